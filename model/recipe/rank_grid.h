// The rank grid: which global rank holds which (tp, cp, dp, pp) coordinate under a rank order, and the process groups.
// Megatron's default "tp-cp-ep-dp-pp": rank = t + tp*(c + cp*(d + dp*p)). Room is left for an expert axis.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/recipe/recipe.h"

namespace cpfit {

struct Coordinate {
  std::int32_t tp = 0, cp = 0, dp = 0, pp = 0;
  friend bool operator==(const Coordinate&, const Coordinate&) = default;
};

/// A group shape is all a homogeneous cluster needs to price a group: its members are first + i*stride.
struct GroupShape {
  std::int64_t stride = 1;
  std::int64_t size = 1;
  friend auto operator<=>(const GroupShape&, const GroupShape&) = default;
};

[[nodiscard]] Coordinate coordinate_of(const Recipe& recipe, std::int64_t rank);
[[nodiscard]] std::int64_t rank_of(const Recipe& recipe, const Coordinate& at);
[[nodiscard]] GroupShape group_shape(const Recipe& recipe, Axis axis);

/// Ranks that share every coordinate but `axis`, in ring order, one vector per group.
[[nodiscard]] std::vector<std::vector<std::int64_t>> process_groups(const Recipe& recipe, Axis axis);
/// The same for several axes at once, e.g. {cp, dp}: the ranks that share one optimizer state. Sorted by first rank.
[[nodiscard]] std::vector<std::vector<std::int64_t>> process_groups(const Recipe& recipe, std::span<const Axis> axes);

/// The two levels of a hierarchical context group: the inner one is the contiguous block of the CP rank list (all-to-all of
/// a2a+p2p, window of the double ring; 1 for the plain ring, cp for a2a), the outer one strides over it. cp_model.md D.4.
[[nodiscard]] GroupShape cp_inner_shape(const Recipe& recipe);
[[nodiscard]] GroupShape cp_outer_shape(const Recipe& recipe);

}  // namespace cpfit
