// How far a shape lies from those that a curve was fitted to, and how much less the curve is worth there.
//
// Above the range rates are near their limit and change slowly. Measured: surfaces fitted to m <= 4,096 (matrix products) and
// to 4,096 tokens (attention) alone, asked for up to 32,768, add 2.4, 3.4 and 5.7 % (root mean square, beyond the error inside)
// at one, two and three octaves. Below the range launches and half-filled waves take over, of which a curve knows nothing.
#pragma once

#include <algorithm>
#include <cmath>

#include "model/rates/curves.h"
#include "model/rates/rate_set.h"

namespace cpfit {

struct Reach {
  double octaves_above = 0;
  bool below = false;

  [[nodiscard]] bool inside() const { return !below && octaves_above <= 0; }
  /// Inside, or above by no more than was tried.
  [[nodiscard]] bool in_range() const { return !below && octaves_above <= kOctavesTrusted; }
  /// The curve's relative standard deviation at this distance.
  [[nodiscard]] double sigma(double inside) const {
    return below ? 2 * inside + 0.1 : std::hypot(inside, kSigmaPerOctave * octaves_above);
  }

 private:
  static constexpr double kOctavesTrusted = 3;     // as far as the measurement above went
  static constexpr double kSigmaPerOctave = 0.02;  // 0.024, 0.017 and 0.019 at one, two and three
};

[[nodiscard]] inline Reach reach(const FittedRange& range, double value) {
  const double above = range.high > 0 && value > range.high ? std::log2(value / range.high) : 0;
  return {above, value < range.low};
}

/// Of a shape with several axes: as far as its farthest.
[[nodiscard]] inline Reach operator|(const Reach& a, const Reach& b) {
  return {std::max(a.octaves_above, b.octaves_above), a.below || b.below};
}

[[nodiscard]] Reach reach_of(const GemmCurve& curve, const GemmShape& shape);
/// Few heads are below the range only where their tiles are fewer than any measured. Windows and documents are below it: no table
/// covers their masked tiles.
[[nodiscard]] Reach reach_of(const AttentionCurve& curve, const AttentionShape& shape);

}  // namespace cpfit
