// What a histogram of document lengths means on average: tokens, attended pairs, mean context, padding. Works on any range of
// {length, count} (recipe/training.h DocumentClass); counts may be fractional. O(classes), no allocation.
// Source: cp_model.md A.8, C (mean context = sum n_i^2 / (2 sum n_i)).
#pragma once

#include <cstdint>

#include "model/attention/packed.h"

namespace cpfit::attention {

struct DocumentMix {
  double documents = 0;
  double real_tokens = 0;    // sum n_i
  double padded_tokens = 0;  // with every document rounded up to `multiple`
  double pairs = 0;          // attended pairs, exactly: sum of n_i (n_i + 1) / 2, through the window if there is one
  double mean_context = 0;   // convention of published FLOP counts: sum n_i^2 / (2 sum n_i) keys per query
  /// Real tokens per stored token.
  [[nodiscard]] constexpr double occupancy() const { return padded_tokens > 0 ? real_tokens / padded_tokens : 1.0; }
  /// Attended keys per query, exactly.
  [[nodiscard]] constexpr double mean_attended() const { return real_tokens > 0 ? pairs / real_tokens : 0.0; }
};

/// `multiple`: what each document is padded to (sequence_multiple()); `window` 0 = none.
template <class Histogram>
[[nodiscard]] constexpr DocumentMix mix_of(const Histogram& histogram, std::int64_t multiple = 1, std::int64_t window = 0) {
  DocumentMix mix;
  double squares = 0;
  for (const auto& entry : histogram) {
    const double n = static_cast<double>(entry.length);
    const MaskView mask{window > 0 ? MaskShape::kWindow : MaskShape::kCausal, window, nullptr, 0};
    mix.documents += entry.count;
    mix.real_tokens += entry.count * n;
    mix.padded_tokens += entry.count * static_cast<double>(round_up(entry.length, multiple));
    mix.pairs += entry.count * static_cast<double>(total_pairs(mask, entry.length));
    squares += entry.count * n * n;
  }
  if (mix.real_tokens > 0) mix.mean_context = squares / (2.0 * mix.real_tokens);
  return mix;
}

/// Mean real tokens of one rank when every document is padded to 2*cp and cut zigzag on its own.
template <class Histogram>
[[nodiscard]] constexpr double mean_valid_tokens(const Histogram& histogram, std::int32_t cp, std::int32_t rank) {
  double valid = 0;
  for (const auto& entry : histogram) {
    const std::int64_t padded = round_up(entry.length, cp > 1 ? 2 * cp : 1);
    valid += entry.count * static_cast<double>(valid_tokens(entry.length, padded, cp, rank));
  }
  return valid;
}

}  // namespace cpfit::attention
