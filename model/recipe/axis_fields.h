// The fields of a recipe and of a coordinate by axis.
#pragma once

#include "model/recipe/rank_grid.h"

namespace cpfit {

/// Ranks along the axis.
[[nodiscard]] inline std::int32_t degree_of(const Recipe& recipe, Axis axis) {
  switch (axis) {
    case Axis::kTp:
      return recipe.tp;
    case Axis::kCp:
      return recipe.cp;
    case Axis::kDp:
      return recipe.dp;
    case Axis::kPp:
      break;
  }
  return recipe.pp;
}

[[nodiscard]] inline std::int32_t& place_on(Coordinate& at, Axis axis) {
  switch (axis) {
    case Axis::kTp:
      return at.tp;
    case Axis::kCp:
      return at.cp;
    case Axis::kDp:
      return at.dp;
    case Axis::kPp:
      break;
  }
  return at.pp;
}

}  // namespace cpfit
