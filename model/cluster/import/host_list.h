// Slurm's host lists: "gpu[001-016,018],login1" stands for its names in order. Private to the importers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/quantity/problem.h"

namespace cpfit {

/// At most `most` names; a problem (code "import.host_list", place left empty) for unclosed brackets, ranges that run backwards,
/// and lists that are longer.
[[nodiscard]] Outcome<std::vector<std::string>> expand_host_list(std::string_view list, std::size_t most);

}  // namespace cpfit
