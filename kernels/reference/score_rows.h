// The element-wise half of attention on the CPU: rows of a tile of scores. Vectorised for the processor that runs it (AVX2 or
// AVX-512 where there is one); the exponential is our own, accurate to 2 units in the last place, because the library's is called
// one number at a time.
#pragma once

#include <cstdint>

#include "kernels/core/array.h"
#include "model/attention/visible.h"

namespace cpfit::kernels {

/// Scores of keys outside `visible` become -inf.
void hide_keys(float* scores, const std::int32_t* positions, std::int64_t keys, attention::KeyRange visible);
void hide_keys(double* scores, const std::int32_t* positions, std::int64_t keys, attention::KeyRange visible);

[[nodiscard]] float largest(const float* scores, std::int64_t keys);
[[nodiscard]] double largest(const double* scores, std::int64_t keys);

/// Each score becomes exp(score - shift), rounded to `rounding` when that is a 16-bit type; returns the sum before rounding.
/// exp is 0 below the smallest normal number and stays finite above (arguments are cut at 88 and 709).
float exp_scores(float* scores, std::int64_t keys, float shift, Number rounding);
double exp_scores(double* scores, std::int64_t keys, double shift, Number rounding);

/// p: scores in, probabilities exp(score - lse) out; dp: gradient of the probabilities in, of the scores out: p * (dp - delta).
/// Both results are rounded to `rounding` when that is a 16-bit type; the product uses the unrounded p.
void differentiate_scores(float* p, float* dp, std::int64_t keys, float lse, float delta, Number rounding);
void differentiate_scores(double* p, double* dp, std::int64_t keys, double lse, double delta, Number rounding);

}  // namespace cpfit::kernels
