#include "kernels/reference/score_rows.h"

#include <bit>
#include <limits>

#include "kernels/reference/small_float.h"

// One body, compiled for several processors; the loader picks. Sanitizers have not started when it does.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define CPFIT_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CPFIT_CLONES
#endif
// The shared bodies have to be compiled inside each clone.
#define CPFIT_BODY __attribute__((always_inline)) inline

namespace cpfit::kernels {

namespace {

// exp(x) = 2^n exp(r), n = round(x / ln 2), |r| <= ln 2 / 2; exp(r) by its Taylor polynomial. Degree 7 leaves 0.35^8 / 8! = 5e-9
// for float, degree 13 0.35^14 / 14! = 4e-18 for double, both below a tenth of the rounding. Adding 1.5 * 2^23 (2^52) rounds to
// an integer and leaves it in the low bits.
CPFIT_BODY float exp_of(float x) {
  constexpr float kShift = 12582912.0F;
  constexpr float kLn2High = 0.693359375F;  // ln 2 in two parts: the product with n is exact in the first
  constexpr float kLn2Low = -2.12194440e-4F;
  const float cut = x < -87.0F ? -87.0F : (x > 88.0F ? 88.0F : x);
  const float shifted = cut * 1.44269504F + kShift;
  const float n = shifted - kShift;
  const float r = (cut - n * kLn2High) - n * kLn2Low;
  float p = 1.0F / 5040;
  p = p * r + 1.0F / 720;
  p = p * r + 1.0F / 120;
  p = p * r + 1.0F / 24;
  p = p * r + 1.0F / 6;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(p) + (std::bit_cast<std::uint32_t>(shifted) << 23);
  return x < -87.0F ? 0.0F : std::bit_cast<float>(bits);
}

CPFIT_BODY double exp_of(double x) {
  constexpr double kShift = 6755399441055744.0;
  constexpr double kLn2High = 0.693147180369123816490;
  constexpr double kLn2Low = 1.90821492927058770002e-10;
  const double cut = x < -708.0 ? -708.0 : (x > 709.0 ? 709.0 : x);
  const double shifted = cut * 1.4426950408889634074 + kShift;
  const double n = shifted - kShift;
  const double r = (cut - n * kLn2High) - n * kLn2Low;
  double p = 1.0 / 6227020800;
  p = p * r + 1.0 / 479001600;
  p = p * r + 1.0 / 39916800;
  p = p * r + 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(p) + (std::bit_cast<std::uint64_t>(shifted) << 52);
  return x < -708.0 ? 0.0 : std::bit_cast<double>(bits);
}

CPFIT_BODY void round_row(float* row, std::int64_t count, Number rounding) {
  if (rounding == Number::kBf16) {
    for (std::int64_t j = 0; j < count; ++j) row[j] = rounded_to_bf16(row[j]);
  } else if (rounding == Number::kFp16) {
    for (std::int64_t j = 0; j < count; ++j) row[j] = rounded_to_fp16(row[j]);
  }
}
CPFIT_BODY void round_row(double*, std::int64_t, Number) {}

template <class Real>
CPFIT_BODY void hide(Real* scores, const std::int32_t* positions, std::int64_t keys, attention::KeyRange visible) {
  constexpr Real kNothing = -std::numeric_limits<Real>::infinity();
  for (std::int64_t j = 0; j < keys; ++j) scores[j] = visible.contains(positions[j]) ? scores[j] : kNothing;
}

template <class Real>
CPFIT_BODY Real maximum(const Real* scores, std::int64_t keys) {
  Real most = -std::numeric_limits<Real>::infinity();
#pragma omp simd reduction(max : most)
  for (std::int64_t j = 0; j < keys; ++j) most = scores[j] > most ? scores[j] : most;
  return most;
}

template <class Real>
CPFIT_BODY Real exponentials(Real* scores, std::int64_t keys, Real shift, Number rounding) {
  Real sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t j = 0; j < keys; ++j) {
    scores[j] = exp_of(scores[j] - shift);
    sum += scores[j];
  }
  round_row(scores, keys, rounding);
  return sum;
}

template <class Real>
CPFIT_BODY void differentiate(Real* p, Real* dp, std::int64_t keys, Real lse, Real delta, Number rounding) {
#pragma omp simd
  for (std::int64_t j = 0; j < keys; ++j) {
    p[j] = exp_of(p[j] - lse);
    dp[j] = p[j] * (dp[j] - delta);
  }
  round_row(p, keys, rounding);
  round_row(dp, keys, rounding);
}

}  // namespace

CPFIT_CLONES void hide_keys(float* scores, const std::int32_t* positions, std::int64_t keys, attention::KeyRange visible) {
  hide(scores, positions, keys, visible);
}
CPFIT_CLONES void hide_keys(double* scores, const std::int32_t* positions, std::int64_t keys, attention::KeyRange visible) {
  hide(scores, positions, keys, visible);
}
CPFIT_CLONES float largest(const float* scores, std::int64_t keys) { return maximum(scores, keys); }
CPFIT_CLONES double largest(const double* scores, std::int64_t keys) { return maximum(scores, keys); }
CPFIT_CLONES float exp_scores(float* scores, std::int64_t keys, float shift, Number rounding) {
  return exponentials(scores, keys, shift, rounding);
}
CPFIT_CLONES double exp_scores(double* scores, std::int64_t keys, double shift, Number rounding) {
  return exponentials(scores, keys, shift, rounding);
}
CPFIT_CLONES void differentiate_scores(float* p, float* dp, std::int64_t keys, float lse, float delta, Number rounding) {
  differentiate(p, dp, keys, lse, delta, rounding);
}
CPFIT_CLONES void differentiate_scores(double* p, double* dp, std::int64_t keys, double lse, double delta, Number rounding) {
  differentiate(p, dp, keys, lse, delta, rounding);
}

}  // namespace cpfit::kernels
