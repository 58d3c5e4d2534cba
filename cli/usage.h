// What a mistyped command line is answered with: which command, what is wrong, and what was probably meant.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace cpfit::cli {

/// Two lines: the mistake, and its repair.
[[nodiscard]] std::string usage_message(const CLI::App& app, const CLI::ParseError& error);

}  // namespace cpfit::cli
