// Positions first, first + stride, ... of one sequence. Every shard of a sequence is one or two parts (zigzag: two chunks,
// contiguous: one, striped: one with stride cp), so every count of attended pairs reduces to pairs of such parts, in closed form.
#pragma once

#include <cstdint>

#include "model/attention/shard.h"

namespace cpfit::attention {

CPFIT_HD constexpr std::int64_t clamp(std::int64_t value, std::int64_t low, std::int64_t high) {
  return value < low ? low : (value > high ? high : value);
}

/// floor(a / b) for b > 0 and any sign of a; C++ division truncates toward zero.
CPFIT_HD constexpr std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }
CPFIT_HD constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return floor_div(a + b - 1, b); }
CPFIT_HD constexpr std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return ceil_div(value, multiple) * multiple;
}

struct Positions {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t stride = 1;
  CPFIT_HD constexpr std::int64_t last() const { return first + (count - 1) * stride; }  // meaningless when count == 0
};

/// The part inside [begin, end).
CPFIT_HD constexpr Positions clip(const Positions& all, std::int64_t begin, std::int64_t end) {
  const std::int64_t low = clamp(ceil_div(begin - all.first, all.stride), 0, all.count);
  const std::int64_t high = clamp(ceil_div(end - all.first, all.stride), low, all.count);
  return {all.first + low * all.stride, high - low, all.stride};
}

/// Pairs (i, j), 0 <= i < q, 0 <= j < k, with j <= i + shift: the sum over i of clamp(i + shift + 1, 0, k).
CPFIT_HD constexpr std::int64_t pairs_below(std::int64_t q, std::int64_t k, std::int64_t shift) {
  // P(t) = sum over u <= t of clamp(u, 0, k): a triangle, then a rectangle.
  const auto prefix = [k](std::int64_t t) {
    if (t <= 0) return std::int64_t{0};
    if (t <= k) return t * (t + 1) / 2;
    return k * (k + 1) / 2 + (t - k) * k;
  };
  return prefix(q + shift) - prefix(shift);
}

/// Pairs (query of q, key of k) with key <= query - lag. Both have the same stride.
CPFIT_HD constexpr std::int64_t pairs_lagging(const Positions& q, const Positions& k, std::int64_t lag) {
  if (q.count == 0 || k.count == 0) return 0;
  return pairs_below(q.count, k.count, floor_div(q.first - k.first - lag, q.stride));
}

/// The parts of one rank's tokens in local order.
struct RankPositions {
  Positions part[2];
  std::int32_t count = 1;
};
CPFIT_HD constexpr RankPositions positions_of(const Shard& shard, std::int32_t rank) {
  const std::int64_t w = shard.chunk();
  if (shard.zigzag()) return {{{rank * w, w, 1}, {(2 * shard.cp - 1 - rank) * w, w, 1}}, 2};
  if (shard.layout == Layout::kStriped) return {{{rank, w, shard.cp}, {}}, 1};
  return {{{rank * w, w, 1}, {}}, 1};
}

}  // namespace cpfit::attention
