// Which kernels a rank runs in each ring step, from the shared work counts of model/attention, and what they take.
#include <algorithm>
#include <cmath>
#include <string_view>

#include "model/attention/document_mix.h"
#include "model/attention/packed_work.h"
#include "model/attention/ring_work.h"
#include "sim/screen/attention_cost.h"

namespace cpfit::operators {

namespace {

using attention::BlockKind;
using attention::Kernel;
using attention::MaskShape;
using attention::MaskView;
using attention::Shard;
using attention::StepWork;

attention::Layout layout_of(ShardLayout layout) {
  switch (layout) {
    case ShardLayout::kZigzag:
      return attention::Layout::kZigzag;
    case ShardLayout::kContiguous:
      return attention::Layout::kContiguous;
    case ShardLayout::kStriped:
      return attention::Layout::kStriped;
  }
  return attention::Layout::kZigzag;
}

MaskView mask_of(const ScreenContext& context, bool windowed) {
  if (windowed) {
    const std::int64_t window = context.training.mask.window > 0 ? context.training.mask.window : context.model.sliding_window;
    return {MaskShape::kWindow, window, nullptr, 0};
  }
  return {context.training.mask.kind == MaskKind::kFull ? MaskShape::kFull : MaskShape::kCausal, 0, nullptr, 0};
}

/// Attention as separate kernels (before FlashAttention): batched products over the whole q x kv rectangle, masked or not, and
/// passes over the 16-bit scores in memory. Forward: fused scale-mask-softmax reads and writes 4 bytes per score, dropout 5 with
/// its mask. Backward: the gradients of both, 6 and 5 bytes, and four products. Byte counts derived here, not read.
Rated unfused_attention_time(const GpuRates& rates, const AttentionShape& work, AttentionPass pass, bool dropout) {
  const std::int64_t rows = work.batch * work.heads * work.q_len;
  const double products = pass == AttentionPass::kForward ? 1.0 : 2.0;
  const double bytes = (pass == AttentionPass::kForward ? 4.0 : 6.0) + (dropout ? 5.0 : 0.0);
  const double scores = static_cast<double>(rows) * static_cast<double>(work.kv_len);
  const Rated scores_product = gemm_time(rates, {rows, work.kv_len, work.head_dim}, MathKind::kBf16);
  const Rated value_product = gemm_time(rates, {rows, work.head_dim, work.kv_len}, MathKind::kBf16);
  const Rated passes = memory_time(rates, Bytes(bytes * scores), dropout ? 2 : 1);
  Rated whole;
  whole.time = (scores_product.time + value_product.time) * products + passes.time;
  whole.relative_sigma = std::max({scores_product.relative_sigma, value_product.relative_sigma, passes.relative_sigma});
  whole.in_range = scores_product.in_range && value_product.in_range && passes.in_range;
  return whole;
}

/// Time of Triton's FlashAttention over that of FlashAttention-2: median and spread of the nine shapes that both have in
/// FlashAttention's A100 figure (flash2_a100_fwd_bwd_benchmark.png @0251105a: 1.47 at 512 tokens to 2.12 at 8,192).
constexpr double kTritonTime = 1.77;
constexpr float kTritonSigma = 0.14F;

/// Time of an eager PyTorch kernel that reads and writes different number formats over that of one which does not: it casts
/// element by element, without vector loads. 16 bits to fp32 on A100, 67 million elements: pytorch/pytorch#195542; fp32 to 16
/// bits on H100, 34 million: #137053. The faster the memory, the more the instructions count.
double cast_time(std::string_view generation) { return generation == "hopper" ? 1.25 : 1.13; }

/// Adds one kernel to a step's forward and backward time. `heads_share`: of this rank's heads (1/u after a head exchange).
struct StepTimer {
  const ScreenContext& context;
  const Recipe& recipe;
  const RankShape& shape;
  StepTimes& times;

  void add(std::size_t step, const Kernel& kernel, double heads_share) const {
    if (kernel.pairs <= 0.0) return;
    if (times.forward.size() > 1) add_merges(step, kernel, heads_share);
    // A varlen call is as wide as its documents are many and as long as their mean; a mixed block still walks its diagonal.
    const double documents = std::max(1.0, kernel.documents);
    AttentionShape work;
    work.batch = std::max<std::int64_t>(1, static_cast<std::int64_t>(recipe.micro_batch * documents + 0.5));
    work.q_len = std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(kernel.q_len) / documents + 0.5));
    work.kv_len = std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(kernel.kv_len) / documents + 0.5));
    work.pairs = kernel.pairs / documents;
    work.causal = kernel.kind != BlockKind::kFull;
    work.heads = std::max<std::int64_t>(1, static_cast<std::int64_t>(shape.heads * heads_share + 0.5));
    work.kv_heads = std::max<std::int64_t>(1, static_cast<std::int64_t>(shape.kv_heads * heads_share + 0.5));
    work.head_dim = context.model.head_dim;
    record(kernel_time(work, AttentionPass::kForward), times.forward[step], times.forward_variance);
    record(kernel_time(work, AttentionPass::kBackward), times.backward[step], times.backward_variance);
  }

  /// Bytes that a ring's merges read and write (cp_model.md G.4, A.2, A.6), O and KV being the step's own rectangles in 16 bits.
  ///   16-bit accumulators (TransformerEngine): the first step copies its part (2), every later one reads both and writes (3);
  ///   causal steps on half of Q or KV copy that half first (2). fp32 accumulators: outputs are cast up (3) and merged as out -
  ///   sigmoid(lse' - lse) * (out - out'), by one kernel (2 + 2 fp32 reads, 1 fp32 write = 6) where the code compiles it, else
  ///   operator by operator: difference (2 + 2 + 2), product (2 + 2), difference (2 + 2 + 2), and a copy (4) back into the rows
  ///   of a part. Gradients are added (2 + 1 + 2), queries, keys and values each by a kernel; at the end the sums are cast back
  ///   (3). TorchScript's kernels are taken to stay apart: in one, striped shards would run 8 to 13 points faster than zhuzilin
  ///   publishes. Where nothing compiles them, kernels between 16 and 32 bits take cast_time() times their bytes'.
  void add_merges(std::size_t step, const Kernel& kernel, double heads_share) const {
    const double bytes_per_row =
        2.0 * static_cast<double>(recipe.micro_batch) * static_cast<double>(context.model.head_dim) * heads_share;
    const double q = bytes_per_row * shape.heads * static_cast<double>(kernel.q_len);
    const double kv = 2.0 * bytes_per_row * shape.kv_heads * static_cast<double>(kernel.kv_len);
    const double shard = static_cast<double>(context.training.sequence.count() * a2a_ranks(recipe)) / recipe.cp;
    const bool fp32 = context.rules.accumulate_fp32;
    const std::size_t last = times.forward.size() - 1;
    const bool reversed = context.rules.reverse_ring_in_backward;
    const bool first_forward = step == 0, last_forward = step == last;
    const bool first_backward = step == (reversed ? last : 0), last_backward = step == (reversed ? 0 : last);
    double forward = 0, backward = 0;
    int merges = 1, sums = 2;  // kernels
    if (fp32) {
      const bool some_rows = !first_forward && static_cast<double>(kernel.q_len) < shard;
      const bool fused = context.rules.fused_merges || context.rules.fused_elementwise;
      const double cast = context.rules.fused_elementwise ? 1.0 : cast_time(context.cluster.gpu.generation);
      const double merge = (fused ? 9.0 : 3.0 * cast + 16.0) + (some_rows ? 4.0 : 0.0);
      forward = (first_forward ? 3.0 * cast : merge) * q + (last_forward ? 3.0 * cast * q : 0.0);
      // Cast, difference, product, difference; five on log-sum-exps alone; copies of both.
      if (!first_forward && !fused) merges = some_rows ? 11 : 9;
      backward = cast * ((first_backward ? 3.0 : 5.0) + (last_backward ? 3.0 : 0.0)) * (q + kv);
      sums = last_backward ? 6 : 3;
    } else {
      const double halves = (static_cast<double>(kernel.q_len) < shard ? 2.0 * q : 0.0) +
                            (static_cast<double>(kernel.kv_len) < shard ? 2.0 * kv : 0.0);
      forward = (first_forward ? 2.0 : 3.0) * q + halves;
      backward = (first_backward ? 2.0 : 3.0) * (q + kv) + halves;
    }
    times.forward_merge[step] += memory_time(context.rates, Bytes(forward), merges).time.value();
    times.backward_merge[step] += memory_time(context.rates, Bytes(backward), sums).time.value();
  }

  [[nodiscard]] Rated kernel_time(const AttentionShape& work, AttentionPass pass) const {
    const AttentionBackend backend = attention_backend_on(context.rules, context.cluster.gpu.generation, context.model.head_dim);
    if (backend == AttentionBackend::kUnfused) {
      return unfused_attention_time(context.rates, work, pass, context.model.attention_dropout > 0.0);
    }
    Rated rated = attention_time(context.rates, work, pass, shape.library, shape.factors.attention_warm);
    if (backend == AttentionBackend::kTriton) {
      rated.time *= kTritonTime;
      rated.relative_sigma = std::hypot(rated.relative_sigma, kTritonSigma);
      rated.in_range = false;
    }
    return rated;
  }

  void record(const Rated& rated, double& seconds, double& variance) const {
    const double time = rated.time.value() * shape.factors.attention;
    seconds += time;
    variance += time * rated.relative_sigma * time * rated.relative_sigma;
    times.in_range = times.in_range && rated.in_range;
  }
};

/// Balanced pairs (RuleSet::kv_exchange): the own diagonal, then one whole block a step; an even number of ranks has half a
/// step's work left for the last one, which the upper half computes.
StepWork paired_step(std::int64_t tokens, std::int32_t ranks, std::int32_t rank, std::int32_t step) {
  if (step == 0) return attention::one_kernel(attention::square_causal_kernel(tokens));
  const bool idle = ranks % 2 == 0 && step == ranks / 2 && rank < ranks / 2;
  return idle ? StepWork{} : attention::one_kernel(attention::dense_kernel(tokens, tokens));
}

/// The work of `rank` in every step of the recipe's strategy.
template <class Visit>
void for_each_kernel(const ScreenContext& context, const Recipe& recipe, const MaskView& mask, std::int32_t rank, Visit visit) {
  const std::int64_t sequence = context.training.sequence.count();
  const bool packed = context.training.mask.kind == MaskKind::kDocuments;
  const auto& documents = context.training.mask.documents;
  // After a head exchange over u ranks a rank holds u neighbouring shards with 1/u of the heads: the ring sees cp/u ranks.
  const std::int32_t u = a2a_ranks(recipe);
  const std::int32_t ring = recipe.cp / u;
  const double heads_share = 1.0 / u;
  const auto all_of = [&](std::size_t step, const StepWork& work) {
    for (std::int32_t i = 0; i < work.count; ++i) visit(step, work.kernel[i], heads_share);
  };
  if (ring == 1) {
    all_of(0, packed ? attention::mean_packed_step(documents, 1, mask.window, 0, 0) : attention::whole_sequence(mask, sequence));
    return;
  }
  const Shard shard{layout_of(recipe.shard_layout), sequence, ring};
  if (runs_in_pairs(context.training, recipe, context.rules) && mask.shape == MaskShape::kCausal) {
    for (std::int32_t step = 0; step <= ring / 2; ++step) {
      all_of(static_cast<std::size_t>(step), paired_step(shard.tokens_per_rank(), ring, rank, step));
    }
    return;
  }
  if (recipe.cp_comm == CpComm::kAllGather && !packed) {
    all_of(0, attention::all_gather(shard, mask, rank));
    return;
  }
  for (std::int32_t step = 0; step < ring; ++step) {
    const std::int32_t owner = recipe.cp_comm == CpComm::kDoubleRing
                                   ? attention::double_ring_owner(ring, recipe.window, rank, step)
                                   : attention::ring_owner(ring, rank, step);
    const std::size_t at = recipe.cp_comm == CpComm::kAllGather ? 0 : static_cast<std::size_t>(step);
    all_of(at, packed ? attention::mean_packed_step(documents, ring, mask.window, rank, owner, shard.layout)
                      : attention::ring_step(shard, mask, rank, owner));
  }
}

}  // namespace

std::vector<StepRectangle> attention_rectangles(const ScreenContext& context, const Recipe& recipe) {
  std::vector<StepRectangle> rectangles;
  const std::int32_t ring = recipe.cp / a2a_ranks(recipe);
  const bool windowed = context.training.mask.kind == MaskKind::kSlidingWindow;
  for_each_kernel(context, recipe, mask_of(context, windowed), ring - 1,
                  [&](std::size_t, const Kernel& kernel, double) { rectangles.push_back({kernel.q_len, kernel.kv_len}); });
  return rectangles;
}

StepTimes attention_steps_of(const ScreenContext& context, const Recipe& recipe, const RankShape& shape, bool windowed,
                             std::int32_t ring_rank) {
  StepTimes times;
  const auto steps = static_cast<std::size_t>(attention_steps_count(context.training, recipe, context.rules));
  for (std::vector<double>* all : {&times.forward, &times.backward, &times.forward_merge, &times.backward_merge})
    all->assign(steps, 0.0);
  const StepTimer timer{context, recipe, shape, times};
  for_each_kernel(context, recipe, mask_of(context, windowed), ring_rank,
                  [&](std::size_t step, const Kernel& kernel, double share) { timer.add(step, kernel, share); });
  // Backward visits the same blocks in the mirrored order: TransformerEngine keeps the diagonal for last.
  if (context.rules.reverse_ring_in_backward) {
    std::reverse(times.backward.begin(), times.backward.end());
    std::reverse(times.backward_merge.begin(), times.backward_merge.end());
  }
  return times;
}

StepTimes attention_steps(const ScreenContext& context, const Recipe& recipe, const RankShape& shape, bool windowed) {
  const std::int32_t ring = recipe.cp / a2a_ranks(recipe);
  // Zigzag balances attended pairs, not seconds (rank 0 and rank ring-1 run differently shaped rectangles), contiguous shards
  // load the last rank most: the slower of the two ends sets the pace of the ring.
  StepTimes slowest = attention_steps_of(context, recipe, shape, windowed, ring - 1);
  if (ring == 1) return slowest;
  StepTimes first = attention_steps_of(context, recipe, shape, windowed, 0);
  const auto total = [](const StepTimes& times) { return times.forward_total() + times.backward_total(); };
  return total(first) > total(slowest) ? first : slowest;
}

}  // namespace cpfit::operators
