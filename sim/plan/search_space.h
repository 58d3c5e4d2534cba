// Which recipes a search considers: every value of every axis that the scenario leaves open, as an outer loop over what
// decides a layer's cost and an inner loop over what only composes it.
#pragma once

#include <functional>
#include <vector>

#include "model/framework/rule_set.h"
#include "model/recipe/scenario.h"

namespace cpfit {

/// Axes with "auto" resolved. Order inside each list is ascending: ties in the ranking go to the earlier value.
struct Axes {
  std::vector<std::int32_t> tp, cp, pp, micro_batch, vpp;
  std::vector<Recompute> recompute;
  std::vector<StateSharding> state_sharding;
  std::vector<std::int32_t> state_shards;  // 0: all data ranks; empty: all, and as many as fill a scale-up domain
  std::vector<CpComm> cp_comm;
  std::vector<ShardLayout> shard_layout;
};
[[nodiscard]] Axes resolve_axes(const Scenario& scenario, const RuleSet& rules);

/// Recipes that differ in (tp, cp, CP strategy, shard layout, micro-batch): one layer cost each. pp and dp are still 1.
[[nodiscard]] std::vector<Recipe> outer_recipes(const Scenario& scenario, const Axes& axes);

/// Calls `visit` for every completion of `outer` with pp, dp, vpp, layout, recompute and state sharding whose world is the
/// cluster.
void for_each_completion(const Scenario& scenario, const RuleSet& rules, const Axes& axes, const Recipe& outer,
                         const std::function<void(const Recipe&)>& visit);

/// Divisors of n in ascending order.
[[nodiscard]] std::vector<std::int32_t> divisors(std::int64_t n, std::int64_t limit);

}  // namespace cpfit
