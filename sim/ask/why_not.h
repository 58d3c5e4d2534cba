// ask why-not: why another CP degree than the one that ships is not taken. Its best recipe under any policy of the search space
// stands beside the shipped one, part by part.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/record/candidate.h"
#include "sim/plan/verdict.h"
#include "sim/plan/workbench.h"

namespace cpfit::ask {

enum class WhyNotRule : std::uint8_t { kItShips, kIllegal, kMemory, kExposed, kThroughput, kSlower, kLargerThanNeeded };
[[nodiscard]] std::string_view name_of(WhyNotRule rule);

struct TimePart {
  std::string_view name;  // "compute", "exposed cp", ...
  Seconds asked, best;
};

struct WhyNot {
  std::int32_t cp = 1;
  WhyNotRule rule = WhyNotRule::kIllegal;
  std::optional<Candidate> best;  // what ships, else the recipe nearest to feasible
  bool ships = false;
  std::optional<Candidate> asked;  // best recipe of that degree: feasible, else fitting, else the least memory
  Problems violations;             // of the shipped recipe with that degree, where none of that degree is legal
  std::vector<TimePart> parts;     // of the step, largest difference first
  std::string sentence;            // the binding rule with its amount
  std::vector<std::string> more;   // what else it would run into, and what would help
};

[[nodiscard]] WhyNot why_not(Workbench& bench, std::int32_t cp);

}  // namespace cpfit::ask
