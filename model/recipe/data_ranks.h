// The order of the data ranks: those that share every coordinate but cp and dp, the faster of the two axes in the rank order
// first. Groups that hold sharded states (Recipe::state_shards) are consecutive ones: Megatron cuts the list of its dp-cp group,
// a device mesh of dp_replicate x dp_shard x cp gives the same.
#pragma once

#include "model/recipe/rank_grid.h"

namespace cpfit {

/// cp varies faster than dp; an axis of one rank does not count.
[[nodiscard]] inline bool cp_before_dp(const Recipe& recipe) {
  if (recipe.cp == 1 || recipe.dp == 1) return recipe.cp > 1;
  return group_shape(recipe, Axis::kCp).stride < group_shape(recipe, Axis::kDp).stride;
}

/// Place of a coordinate among the dp * cp data ranks, from 0.
[[nodiscard]] inline std::int64_t data_place(const Recipe& recipe, const Coordinate& at) {
  return cp_before_dp(recipe) ? at.cp + std::int64_t{recipe.cp} * at.dp : at.dp + std::int64_t{recipe.dp} * at.cp;
}

/// The data rank at a place: `at` with another cp and dp.
[[nodiscard]] inline Coordinate at_data_place(const Recipe& recipe, Coordinate at, std::int64_t place) {
  const bool cp_first = cp_before_dp(recipe);
  const std::int64_t fast = cp_first ? recipe.cp : recipe.dp;
  (cp_first ? at.cp : at.dp) = static_cast<std::int32_t>(place % fast);
  (cp_first ? at.dp : at.cp) = static_cast<std::int32_t>(place / fast);
  return at;
}

/// After other degrees: all data ranks share one copy where the groups no longer divide them, or are the only one.
inline void settle_state_shards(Recipe& recipe) {
  const std::int64_t ranks = std::int64_t{recipe.dp} * recipe.cp;
  if (recipe.state_shards >= ranks || (recipe.state_shards > 0 && ranks % recipe.state_shards != 0)) recipe.state_shards = 0;
}

}  // namespace cpfit
