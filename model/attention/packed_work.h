// Kernels per ring step when packed documents are cut one by one (TransformerEngine THD): each step is one varlen call over all
// documents, balanced for any mix of lengths. For explicit documents, exactly; for a histogram of lengths, on average. Real
// lengths may be shorter than the padded ones. O(documents) or O(classes), nothing allocates. Source: cp_model.md A.3, A.8.
#pragma once

#include <cstdint>

#include "model/attention/packed.h"
#include "model/attention/ring_work.h"

namespace cpfit::attention {

/// Attended pairs of one document (n real tokens in p padded) between rank `rank`'s queries and `owner`'s keys.
CPFIT_HD constexpr std::int64_t document_pairs(std::int64_t n, std::int64_t p, std::int32_t cp, std::int64_t window,
                                               std::int32_t rank, std::int32_t owner, Layout layout = Layout::kZigzag) {
  const Shard shard{layout, p, cp};
  const Document document{0, n, p};
  if (window > 0 || cp == 1 || layout != Layout::kZigzag)
    return shard_pairs(shard, document_mask(&document, 1, window), rank, owner);
  const std::int64_t c = shard.chunk();
  const std::int64_t queries = valid_tokens(n, p, cp, rank);
  if (owner == rank) return queries * (queries + 1) / 2;
  if (owner < rank) return queries * clamp(n - owner * c, 0, c);
  return clamp(n - (2 * cp - 1 - rank) * c, 0, c) * valid_tokens(n, p, cp, owner);
}

/// Sums one document's (or `count` equal documents') share of a step into a varlen kernel.
struct PackedStep {
  double q_len = 0, kv_len = 0, pairs = 0, documents = 0, unwindowed = 0;
  Layout layout = Layout::kZigzag;  // of each document
  CPFIT_HD constexpr void add(std::int64_t n, std::int64_t p, double count, std::int32_t cp, std::int64_t window,
                              std::int32_t rank, std::int32_t owner) {
    const StepWork storage = causal_step({layout, p, cp}, rank, owner);
    const double own = static_cast<double>(document_pairs(n, p, cp, window, rank, owner, layout));
    q_len += count * static_cast<double>(storage.kernel[0].q_len);
    kv_len += count * static_cast<double>(storage.kernel[0].kv_len);
    pairs += count * own;
    documents += own > 0 ? count : 0.0;
    unwindowed += window > 0 ? count * static_cast<double>(document_pairs(n, p, cp, 0, rank, owner, layout)) : count * own;
  }
  CPFIT_HD constexpr StepWork work(bool diagonal) const {
    const BlockKind kind = pairs != unwindowed ? BlockKind::kMixed : (diagonal ? BlockKind::kCausal : BlockKind::kFull);
    return one_kernel({static_cast<std::int64_t>(q_len + 0.5), static_cast<std::int64_t>(kv_len + 0.5), pairs, kind, documents});
  }
};

/// Explicit documents. Every padded length divides by 2*cp.
CPFIT_HD constexpr StepWork packed_step(const PackedShard& packed, std::int64_t window, std::int32_t rank, std::int32_t owner) {
  PackedStep step;
  for (std::int32_t i = 0; i < packed.document_count; ++i) {
    step.add(packed.documents[i].real, packed.documents[i].padded, 1.0, packed.cp, window, rank, owner);
  }
  return step.work(rank == owner);
}

/// A histogram of {length, count}: each document is padded up to 2*cp and cut in `layout` on its own.
template <class Histogram>
[[nodiscard]] constexpr StepWork mean_packed_step(const Histogram& histogram, std::int32_t cp, std::int64_t window,
                                                  std::int32_t rank, std::int32_t owner, Layout layout = Layout::kZigzag) {
  PackedStep step;
  step.layout = layout;
  for (const auto& entry : histogram) {
    step.add(entry.length, round_up(entry.length, cp > 1 ? 2 * cp : 1), entry.count, cp, window, rank, owner);
  }
  return step.work(rank == owner);
}

/// Pairs of all steps of one rank.
CPFIT_HD constexpr double packed_rank_pairs(const PackedShard& packed, std::int64_t window, std::int32_t rank) {
  double pairs = 0;
  for (std::int32_t owner = 0; owner < packed.cp; ++owner) pairs += packed_step(packed, window, rank, owner).pairs();
  return pairs;
}

/// KV gathered once: one varlen kernel per chunk index, each document's chunk against its own prefix.
CPFIT_HD constexpr StepWork packed_all_gather(const PackedShard& packed, std::int64_t window, std::int32_t rank) {
  StepWork work;
  const std::int32_t chunks = packed.cp > 1 ? 2 : 1;
  for (std::int32_t which = 0; which < chunks; ++which) {
    Kernel kernel{0, 0, 0, BlockKind::kCausal, 0};
    double causal = 0;
    for (std::int32_t i = 0; i < packed.document_count; ++i) {
      const Document& document = packed.documents[i];
      const Positions chunk = positions_of(shard_of(document, packed.cp), rank).part[which];
      const Positions valid = clip(chunk, 0, document.real);
      const std::int64_t k_begin = window > 0 ? clamp(chunk.first - window + 1, 0, chunk.first) : 0;
      const std::int64_t end = chunk.first + chunk.count;
      const double own = static_cast<double>(causal_pairs(valid, {0, end, 1}, window));
      kernel.q_len += chunk.count;
      kernel.kv_len += end - k_begin;
      kernel.pairs += own;
      kernel.documents += own > 0 ? 1.0 : 0.0;
      causal += static_cast<double>(causal_pairs(valid, {0, end, 1}, 0));
    }
    if (kernel.pairs != causal) kernel.kind = BlockKind::kMixed;
    if (kernel.pairs > 0) work.kernel[work.count++] = kernel;
  }
  return work;
}

/// Pairs of one rank when the balancer orders the chunks document by document and the result is cut in equal parts: a cut inside
/// a document leaves one rank its expensive tail (PyTorch before PR#189902). O(documents * cp).
CPFIT_HD constexpr double document_major_pairs(const PackedShard& packed, std::int32_t rank) {
  const std::int64_t own = packed.tokens_per_rank();
  double pairs = 0;
  for (std::int32_t i = 0; i < packed.document_count; ++i) {
    const Document& document = packed.documents[i];
    const std::int64_t low = clamp(rank * own - document.start, 0, document.padded);
    const std::int64_t high = clamp((rank + 1) * own - document.start, 0, document.padded);
    const Shard shard = shard_of(document, packed.cp);
    const std::int64_t row = shard.tokens_per_rank();
    for (std::int32_t of = 0; of < packed.cp; ++of) {  // slots [of*row, (of+1)*row) hold the chunks of rank `of`
      const RankPositions parts = positions_of(shard, of);
      for (std::int32_t half = 0; half < parts.count; ++half) {
        const std::int64_t slot = of * row + half * parts.part[half].count;
        const std::int64_t first = parts.part[half].first - slot;  // position = slot + first
        const Positions queries = clip(parts.part[half], low + first, high + first);
        pairs += static_cast<double>(causal_pairs(clip(queries, 0, document.real), {0, document.real, 1}, 0));
      }
    }
  }
  return pairs;
}

}  // namespace cpfit::attention
