// A study whose ranks lie where the placement optimiser would put them: the recipe's rank order and the cluster's device orders
// changed, everything else as it was. The closed form and the timeline take it as they take any study.
#pragma once

#include <optional>

#include "sim/plan/placement_search.h"
#include "sim/plan/workbench.h"

namespace cpfit {

inline constexpr std::int64_t kPlacedBeside = 512;  // ranks up to which a better placement is looked for beside other work

struct PlacedStudy {
  Scenario scenario;
  Recipe recipe;
  PlacementAdvice advice;
};

/// None where nothing is better, where GPUs would have to change hosts (the launcher's rank file decides there), or beyond
/// kPlacedBeside ranks. The recipe must be legal and prepared.
[[nodiscard]] std::optional<PlacedStudy> better_placed(const Workbench& bench, const Recipe& recipe);

}  // namespace cpfit
