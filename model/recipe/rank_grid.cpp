#include "model/recipe/rank_grid.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "model/recipe/axis_fields.h"

namespace cpfit {

namespace {

void require_rank(const Recipe& recipe, std::int64_t rank) {
  if (rank >= 0 && rank < recipe.world()) return;
  std::fprintf(stderr, "cpfit: internal error: rank %lld is outside a world of %lld\n", static_cast<long long>(rank),
               static_cast<long long>(recipe.world()));
  std::abort();
}

}  // namespace

Coordinate coordinate_of(const Recipe& recipe, std::int64_t rank) {
  require_rank(recipe, rank);
  Coordinate at;
  for (const Axis axis : recipe.rank_order.axes) {
    const std::int64_t size = degree_of(recipe, axis);
    place_on(at, axis) = static_cast<std::int32_t>(rank % size);
    rank /= size;
  }
  return at;
}

std::int64_t rank_of(const Recipe& recipe, const Coordinate& at) {
  Coordinate copy = at;
  std::int64_t rank = 0;
  std::int64_t stride = 1;
  for (const Axis axis : recipe.rank_order.axes) {
    rank += stride * place_on(copy, axis);
    stride *= degree_of(recipe, axis);
  }
  require_rank(recipe, rank);
  return rank;
}

GroupShape group_shape(const Recipe& recipe, Axis axis) {
  GroupShape shape{1, degree_of(recipe, axis)};
  for (const Axis faster : recipe.rank_order.axes) {
    if (faster == axis) break;
    shape.stride *= degree_of(recipe, faster);
  }
  return shape;
}

GroupShape cp_inner_shape(const Recipe& recipe) {
  const std::int64_t inner = recipe.cp_comm == CpComm::kDoubleRing ? recipe.window : a2a_ranks(recipe);
  return {group_shape(recipe, Axis::kCp).stride, inner};
}

GroupShape cp_outer_shape(const Recipe& recipe) {
  const GroupShape inner = cp_inner_shape(recipe);
  return {inner.stride * inner.size, recipe.cp / inner.size};
}

std::vector<std::vector<std::int64_t>> process_groups(const Recipe& recipe, std::span<const Axis> axes) {
  // Members run along the axes of the group, fastest first in rank order; groups along the others.
  std::vector<GroupShape> along, across;
  for (const Axis axis : recipe.rank_order.axes) {
    const bool inside = std::find(axes.begin(), axes.end(), axis) != axes.end();
    (inside ? along : across).push_back(group_shape(recipe, axis));
  }
  const auto offsets = [](const std::vector<GroupShape>& shapes) {
    std::vector<std::int64_t> found = {0};
    for (const GroupShape& shape : shapes) {
      std::vector<std::int64_t> next;
      next.reserve(found.size() * static_cast<std::size_t>(shape.size));
      for (std::int64_t i = 0; i < shape.size; ++i) {
        for (const std::int64_t offset : found) next.push_back(offset + i * shape.stride);
      }
      found = std::move(next);
    }
    return found;
  };
  const std::vector<std::int64_t> members = offsets(along);
  std::vector<std::int64_t> firsts = offsets(across);
  std::sort(firsts.begin(), firsts.end());
  std::vector<std::vector<std::int64_t>> groups;
  groups.reserve(firsts.size());
  for (const std::int64_t first : firsts) {
    std::vector<std::int64_t>& group = groups.emplace_back();
    group.reserve(members.size());
    for (const std::int64_t offset : members) group.push_back(first + offset);
  }
  return groups;
}

std::vector<std::vector<std::int64_t>> process_groups(const Recipe& recipe, Axis axis) {
  return process_groups(recipe, std::span(&axis, 1));
}

}  // namespace cpfit
