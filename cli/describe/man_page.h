// Manual pages (man(7) macros) from what the commands say of themselves.
#pragma once

#include <string>

#include "cli/describe/command_text.h"

namespace cpfit::cli {

/// One page of section 1 for a program with all its commands. `version` stands in the footer; there is no date, so that the same
/// program gives the same page.
[[nodiscard]] std::string man_page(const CommandText& program, const std::string& version);

/// A page of section 1 for a program of which only the text of --help is known.
[[nodiscard]] std::string man_page_of_help(const std::string& program, const std::string& help, const std::string& version);

}  // namespace cpfit::cli
