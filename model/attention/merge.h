// Merging two partial results of attention over disjoint sets of keys, by log-sum-exp. One implementation for the CPU, the CUDA
// kernels and the tests. A row that attended to nothing has lse = -inf and output 0; kernels in the field also return +inf or NaN
// for such rows (FlashAttention 2: +inf), so any lse that is not finite counts as "nothing": weight 0. The merged lse is -inf
// only when both are nothing. Source: cp_model.md E.1, E.3.
#pragma once

#include <cmath>
#include <limits>

#include "model/attention/shard.h"

namespace cpfit::attention {

template <class Real>
CPFIT_HD inline bool attended_to_something(Real lse) {
  // Finite: false for -inf, +inf and NaN, without a library call.
  return lse - lse == Real(0);  // NOLINT(misc-redundant-expression)
}

template <class Real>
struct MergeWeights {
  Real lse;    // of both parts together
  Real first;  // out = first * out_1 + second * out_2
  Real second;
};

/// max + log1p form: no exponential of a large number is ever taken. The weights come from the difference alone (a sigmoid), so
/// they add up to 1 however large the log-sums are; exp(lse_1 - lse) would carry the rounding of lse.
template <class Real>
CPFIT_HD inline MergeWeights<Real> merge_weights(Real lse_1, Real lse_2) {
  const bool has_1 = attended_to_something(lse_1);
  const bool has_2 = attended_to_something(lse_2);
  if (!has_1 && !has_2) return {-std::numeric_limits<Real>::infinity(), Real(0), Real(0)};
  if (!has_2) return {lse_1, Real(1), Real(0)};
  if (!has_1) return {lse_2, Real(0), Real(1)};
  using std::exp, std::log1p;  // of Real: the global ones are of double
  const bool first_is_higher = lse_1 > lse_2;
  const Real ratio = first_is_higher ? exp(lse_2 - lse_1) : exp(lse_1 - lse_2);
  const Real higher = Real(1) / (Real(1) + ratio);
  const Real lower = ratio * higher;
  return {(first_is_higher ? lse_1 : lse_2) + log1p(ratio), first_is_higher ? higher : lower, first_is_higher ? lower : higher};
}

/// The same through exp(lse), as codes have been written: overflows above 88 in fp32. Rows that attended to nothing follow the
/// rule all the same, so that nothing but the overflow is wrong with it. For the suite, which proves that it would see it.
template <class Real>
CPFIT_HD inline MergeWeights<Real> merge_weights_through_exp(Real lse_1, Real lse_2) {
  if (!attended_to_something(lse_1) || !attended_to_something(lse_2)) return merge_weights(lse_1, lse_2);
  using std::exp, std::log;
  const Real lse = log(exp(lse_1) + exp(lse_2));
  return {lse, Real(exp(lse_1 - lse)), Real(exp(lse_2 - lse))};
}

/// A part of weight 0 contributes 0, whatever it holds: kernels leave NaN in rows that attended to nothing.
template <class Real>
CPFIT_HD inline Real weighted(Real weight, Real value) {
  return weight == Real(0) ? Real(0) : weight * value;
}

/// Weight of a part in the result whose log-sum-exp is `total`; 0 when either attended to nothing.
template <class Real>
CPFIT_HD inline Real part_weight(Real lse_part, Real total) {
  using std::exp;
  return attended_to_something(lse_part) && attended_to_something(total) ? Real(exp(lse_part - total)) : Real(0);
}

}  // namespace cpfit::attention
