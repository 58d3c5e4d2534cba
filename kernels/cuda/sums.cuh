// Sums of partial results: merge by log-sum-exp, weighted addition, addition, and delta. Weights and merged log-sum-exps come
// from model/attention/merge.h, which the CPU uses too. Computed in Real; every result is rounded to its type once.
//   part, sum [rows][heads][v_dim]   part_lse, sum_lse, total_lse, delta [rows][heads], Real
#pragma once

#include <cstdint>

#include "kernels/core/operators.h"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/ptx.cuh"
#include "model/attention/merge.h"

namespace cpfit::kernels::device {

inline constexpr int kSumThreads = 256;

/// kWidth numbers that are read or written at once.
template <class Element, int kWidth>
struct alignas(sizeof(Element) * kWidth) Pack {
  Element number[kWidth];
};

/// sum = first * sum + second * part on one pack; a part of weight 0 contributes 0, whatever it holds.
template <class Real, class Part, class Sum, int kWidth>
__device__ __forceinline__ void combine(const Pack<Part, kWidth>& part, Pack<Sum, kWidth>& sum, Real first, Real second) {
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    const Real value =
        attention::weighted(first, to_real<Real>(sum.number[i])) + attention::weighted(second, to_real<Real>(part.number[i]));
    sum.number[i] = from_real<Sum>(value);
  }
}

/// A block combines this many rows of one head each; their weights are computed once and lie in shared memory.
inline constexpr int kHeadRows = 16;
template <class Real>
struct PairOfWeights {
  Real first;
  Real second;
};
template <class Real>
inline constexpr int kWeightBytes = kHeadRows * static_cast<int>(sizeof(PairOfWeights<Real>));

/// `count` = rows * heads; packs: v_dim / kWidth of each. weights_of(i): for head row i, called once for each.
template <class Real, int kWidth, class Part, class Sum, class WeightsOf>
__device__ __forceinline__ void combine_head_rows(const Part* part, Sum* sum, std::int64_t count, int packs,
                                                  const WeightsOf& weights_of) {
  auto* const weights = reinterpret_cast<PairOfWeights<Real>*>(ptx::dynamic_shared());
  const std::int64_t begin = std::int64_t{ptx::block_x()} * kHeadRows;
  const int here = count - begin < kHeadRows ? static_cast<int>(count - begin) : kHeadRows;
  if (ptx::thread_x() < here) weights[ptx::thread_x()] = weights_of(begin + ptx::thread_x());
  ptx::sync_block();
  for (int i = ptx::thread_x(); i < here * packs; i += kSumThreads) {
    const std::int64_t place = begin * packs + i;
    const PairOfWeights<Real> pair = weights[i / packs];
    auto& to = reinterpret_cast<Pack<Sum, kWidth>*>(sum)[place];
    Pack<Sum, kWidth> value = to;
    combine(reinterpret_cast<const Pack<Part, kWidth>*>(part)[place], value, pair.first, pair.second);
    to = value;
  }
}

template <class Real>
__device__ __forceinline__ attention::MergeWeights<Real> merged(MergeForm form, Real lse_1, Real lse_2) {
  return form == MergeForm::kStable ? attention::merge_weights(lse_1, lse_2) : attention::merge_weights_through_exp(lse_1, lse_2);
}

template <class Part, class Sum, class Real, int kWidth>
__global__ void __launch_bounds__(kSumThreads)
    merge_kernel(MergeForm form, const Part* part, const Real* part_lse, Sum* sum, Real* sum_lse, std::int64_t count, int packs) {
  combine_head_rows<Real, kWidth>(part, sum, count, packs, [=](std::int64_t i) {
    const attention::MergeWeights<Real> weights = merged(form, sum_lse[i], part_lse[i]);
    sum_lse[i] = weights.lse;
    return PairOfWeights<Real>{weights.first, weights.second};
  });
}

template <class Part, class Sum, class Real, int kWidth>
__global__ void __launch_bounds__(kSumThreads)
    add_weighted_kernel(const Part* part, const Real* part_lse, const Real* total_lse, Sum* sum, std::int64_t count, int packs) {
  combine_head_rows<Real, kWidth>(part, sum, count, packs, [=](std::int64_t i) {
    return PairOfWeights<Real>{Real(1), attention::part_weight(part_lse[i], total_lse[i])};
  });
}

/// `count` packs.
template <class Part, class Sum, class Real, int kWidth>
__global__ void __launch_bounds__(kSumThreads) add_kernel(const Part* part, Sum* sum, std::int64_t count) {
  const std::int64_t i = std::int64_t{ptx::block_x()} * kSumThreads + ptx::thread_x();
  if (i >= count) return;
  auto& to = reinterpret_cast<Pack<Sum, kWidth>*>(sum)[i];
  Pack<Sum, kWidth> value = to;
  combine(reinterpret_cast<const Pack<Part, kWidth>*>(part)[i], value, Real(1), Real(1));
  to = value;
}

template <class Real>
__global__ void __launch_bounds__(kSumThreads)
    merge_lse_kernel(MergeForm form, const Real* part_lse, Real* sum_lse, std::int64_t count) {
  const std::int64_t i = std::int64_t{ptx::block_x()} * kSumThreads + ptx::thread_x();
  if (i < count) sum_lse[i] = merged(form, sum_lse[i], part_lse[i]).lse;
}

/// A warp per row of a head: delta = sum of out * dout over v_dim.
template <class Out, class Dout, class Real>
__global__ void __launch_bounds__(kSumThreads)
    row_delta_kernel(const Out* out, const Dout* dout, Real* delta, std::int64_t count, int v_dim) {
  const std::int64_t i = std::int64_t{ptx::block_x()} * (kSumThreads / 32) + ptx::thread_x() / 32;
  if (i >= count) return;
  Real sum = 0;
  for (int column = ptx::thread_x() % 32; column < v_dim; column += 32) {
    sum += to_real<Real>(out[i * v_dim + column]) * to_real<Real>(dout[i * v_dim + column]);
  }
  for (int step = 16; step > 0; step /= 2) sum += ptx::shuffle_xor(sum, step);
  if (ptx::thread_x() % 32 == 0) delta[i] = sum;
}

}  // namespace cpfit::kernels::device
