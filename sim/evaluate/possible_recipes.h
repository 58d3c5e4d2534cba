// The recipes that a published row may mean: its printed fields fixed, the others over what its authors could have run.
#pragma once

#include <vector>

#include "model/framework/rule_set.h"
#include "model/record/validation.h"

namespace cpfit {

/// In a fixed order: tp, pp, vpp, micro-batch ascending, recompute none before selective before full. Only values that can be
/// laid out on the run's GPUs; legality is not checked. One entry when nothing is unknown.
[[nodiscard]] std::vector<Recipe> possible_recipes(const MeasuredRun& run, const RuleSet& rules);

}  // namespace cpfit
