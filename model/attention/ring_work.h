// The kernels of one rank in every step of context-parallel attention: rectangle, attended pairs per head, what the kernel meets
// in it. The rectangle is what the codes launch (the sections of cp_model.md A.3), the pairs are what the mask attends to inside
// it. O(1) for full, causal and windowed masks, O(documents) for packed ones; nothing allocates. Backward visits the same
// blocks. A step without any attended pair launches no kernel.
#pragma once

#include <cstdint>

#include "model/attention/mask.h"

namespace cpfit::attention {

/// One attention kernel, per sequence and head. A packed (varlen) call is one kernel whose lengths are sums over its documents.
struct Kernel {
  std::int64_t q_len = 0;
  std::int64_t kv_len = 0;
  double pairs = 0;  // attended (query, key) pairs; integers are exact up to 2^53
  BlockKind kind = BlockKind::kEmpty;
  double documents = 1;  // segments of the call; 1 unless documents are cut one by one
};

/// The kernels of one step; only TE's all_gather has two.
struct StepWork {
  Kernel kernel[2];
  std::int32_t count = 0;
  CPFIT_HD constexpr double pairs() const {
    double sum = 0;
    for (std::int32_t i = 0; i < count; ++i) sum += kernel[i].pairs;
    return sum;
  }
};

CPFIT_HD constexpr StepWork one_kernel(const Kernel& kernel) {
  StepWork work;
  if (kernel.pairs > 0) {
    work.kernel[0] = kernel;
    work.count = 1;
  }
  return work;
}
CPFIT_HD constexpr Kernel dense_kernel(std::int64_t q, std::int64_t k) {
  return {q, k, static_cast<double>(q) * static_cast<double>(k), BlockKind::kFull};
}
CPFIT_HD constexpr Kernel square_causal_kernel(std::int64_t n) {
  return {n, n, 0.5 * static_cast<double>(n) * static_cast<double>(n + 1), BlockKind::kCausal};
}

/// Whose KV rank `rank` holds in step `step`, 0 <= step < cp: a forward ring passes KV to rank + 1.
CPFIT_HD constexpr std::int32_t ring_owner(std::int32_t cp, std::int32_t rank, std::int32_t step) {
  return rank >= step ? rank - step : rank - step + cp;
}
/// The same for a double ring of cp / window inner rings of `window` ranks: the inner ring turns `window` times, then its KV
/// moves on one window.
CPFIT_HD constexpr std::int32_t double_ring_owner(std::int32_t cp, std::int32_t window, std::int32_t rank, std::int32_t step) {
  const std::int32_t outer = ring_owner(cp / window, rank / window, step / window);
  return outer * window + ring_owner(window, rank % window, step % window);
}

/// Rank `rank`'s queries against the KV shard of `owner` under the causal mask. The fast path: a few integer operations.
CPFIT_HD constexpr StepWork causal_step(const Shard& shard, std::int32_t rank, std::int32_t owner) {
  const std::int64_t n = shard.tokens_per_rank();
  if (owner == rank) return one_kernel(square_causal_kernel(n));
  if (shard.zigzag()) {  // a lower rank's first chunk precedes all queries; a higher rank's chunks both precede our second one
    return one_kernel(owner < rank ? dense_kernel(n, n / 2) : dense_kernel(n / 2, n));
  }
  if (shard.layout == Layout::kContiguous) return owner < rank ? one_kernel(dense_kernel(n, n)) : StepWork{};
  return one_kernel(square_causal_kernel(owner < rank ? n : n - 1));  // striped: inclusive or strictly causal (q[1:], k[:-1])
}

/// Pairs between the tokens of two ranks, whatever the layout.
CPFIT_HD constexpr std::int64_t shard_pairs(const Shard& shard, const MaskView& mask, std::int32_t rank, std::int32_t owner) {
  const RankPositions q = positions_of(shard, rank);
  const RankPositions k = positions_of(shard, owner);
  std::int64_t pairs = 0;
  for (std::int32_t i = 0; i < q.count; ++i) {
    for (std::int32_t j = 0; j < k.count; ++j) pairs += pairs_between(mask, q.part[i], k.part[j]);
  }
  return pairs;
}

/// The same under any mask. Documents are cut as one flattened sequence (PyTorch HeadTail); for the cut document by document see
/// packed_work.h.
CPFIT_HD constexpr StepWork ring_step(const Shard& shard, const MaskView& mask, std::int32_t rank, std::int32_t owner) {
  if (mask.shape == MaskShape::kCausal) return causal_step(shard, rank, owner);
  if (mask.shape == MaskShape::kFull) return one_kernel(dense_kernel(shard.tokens_per_rank(), shard.tokens_per_rank()));
  const StepWork work = causal_step(shard, rank, owner);
  if (work.count == 0) return work;
  Kernel kernel = work.kernel[0];
  const double pairs = static_cast<double>(shard_pairs(shard, mask, rank, owner));
  if (pairs != kernel.pairs) {  // every mask here is a subset of the causal one: equal count, equal set
    kernel.pairs = pairs;
    kernel.kind = BlockKind::kMixed;
  }
  return one_kernel(kernel);
}

/// Pairs of all steps of one rank.
CPFIT_HD constexpr double rank_pairs(const Shard& shard, const MaskView& mask, std::int32_t rank) {
  double pairs = 0;
  for (std::int32_t owner = 0; owner < shard.cp; ++owner) {
    pairs += static_cast<double>(shard_pairs(shard, mask, rank, owner));
  }
  return pairs;
}

/// The whole sequence on one rank: cp = 1, and every all-to-all method (with h_q / cp heads).
CPFIT_HD constexpr StepWork whole_sequence(const MaskView& mask, std::int64_t sequence) {
  return one_kernel(
      {sequence, sequence, static_cast<double>(total_pairs(mask, sequence)), classify(mask, 0, sequence, 0, sequence)});
}

/// KV gathered once, then one kernel per chunk of queries against the keys it can see, bottom-right causal: two for zigzag
/// (TE all_gather), one for contiguous (llama3 style); striped queries meet the whole sequence.
CPFIT_HD constexpr StepWork all_gather(const Shard& shard, const MaskView& mask, std::int32_t rank) {
  if (shard.cp == 1) return whole_sequence(mask, shard.sequence);
  if (shard.layout == Layout::kStriped) {
    Kernel kernel = dense_kernel(shard.tokens_per_rank(), shard.sequence);
    const double pairs = rank_pairs(shard, mask, rank);
    if (pairs != kernel.pairs) kernel.kind = BlockKind::kMixed;
    kernel.pairs = pairs;
    return one_kernel(kernel);
  }
  StepWork work;
  const RankPositions parts = positions_of(shard, rank);
  for (std::int32_t i = 0; i < parts.count; ++i) {
    const std::int64_t begin = parts.part[i].first;
    const std::int64_t end = begin + parts.part[i].count;
    const std::int64_t k_begin = mask.window > 0 ? clamp(begin - mask.window + 1, 0, begin) : 0;
    const std::int64_t k_end = mask.shape == MaskShape::kFull ? shard.sequence : end;
    const double pairs = static_cast<double>(pairs_in(mask, begin, end, k_begin, k_end));
    if (pairs > 0) {
      work.kernel[work.count++] = {end - begin, k_end - k_begin, pairs, classify(mask, begin, end, k_begin, k_end)};
    }
  }
  return work;
}

}  // namespace cpfit::attention
