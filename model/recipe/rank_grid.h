// The rank grid: which global rank holds which (tp, cp, dp, pp) coordinate under a rank order, and the process groups.
// Megatron's default "tp-cp-ep-dp-pp": rank = t + tp*(c + cp*(d + dp*p)). Room is left for an expert axis.
#pragma once

#include <cstdint>
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

}  // namespace cpfit
