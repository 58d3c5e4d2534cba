#include "sim/evaluate/predict_kernel.h"

#include <algorithm>
#include <cmath>

#include "model/cluster/member_network.h"
#include "model/rates/curves.h"
#include "model/rates/dense_peak.h"
#include "model/rates/group_rate.h"
#include "sim/evaluate/eager_host.h"
#include "sim/screen/attention_cost.h"
#include "sim/screen/composition.h"
#include "sim/screen/layer_cost.h"

namespace cpfit {

namespace {

/// Relative standard deviation of what the host adds: from one machine to the next its speed differs by half.
constexpr double kHostSigma = 0.3;

/// Sums of operators: times add, errors of the same surface are taken as fully correlated.
struct Total {
  double seconds = 0, deviation = 0;
  void add(const Rated& rated) {
    seconds += rated.time.value();
    deviation += rated.time.value() * rated.relative_sigma;
  }
  [[nodiscard]] Predicted with_interval() const {
    const double spread = 1 + (seconds > 0 ? kNinetyPercent * deviation / seconds : 0);
    return {seconds, seconds / spread, seconds * spread};
  }
};

double attention_flops(const MeasuredKernel& kernel) {
  const AttentionShape& shape = kernel.attention;
  const double d = static_cast<double>(shape.head_dim);
  const double d_v = shape.head_dim_v > 0 ? static_cast<double>(shape.head_dim_v) : d;
  const double per_pair = (kernel.forward ? flops_per_pair(AttentionPass::kForward, d, d_v) : 0) +
                          (kernel.backward ? flops_per_pair(AttentionPass::kBackward, d, d_v) : 0);
  return per_pair * shape.pairs * static_cast<double>(shape.batch * shape.heads);
}

double gemm_flops(const MeasuredKernel& kernel) {
  double flops = 0;
  for (const GemmShape& shape : kernel.gemms) {
    flops += 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.k);
  }
  return flops;
}

/// The network of a benchmark's group: it runs alone, over the first GPUs.
GroupNetwork network_of(const MeasuredKernel& kernel, Predictor& predictor) {
  const GroupShape shape = kernel.members;
  if (shape.size * shape.stride < kernel.cluster.gpus()) {
    std::vector<std::int64_t> group;
    for (std::int64_t i = 0; i < shape.size; ++i) group.push_back(i * shape.stride);
    return price_members(kernel.cluster, {{group}}, kernel.collective == CollectiveKind::kAllToAll);
  }
  NetworkView& view = predictor.network(kernel.cluster);
  view.prepare(shape);
  return view.at(shape);
}

std::variant<Predicted, Unpredictable> predict_collective(const MeasuredKernel& kernel, Predictor& predictor) {
  const GpuRates& rates = predictor.rates().of(kernel.cluster.gpu);
  const GroupNetwork network = network_of(kernel, predictor);
  Total total;
  if (kernel.collective == CollectiveKind::kSendRecv) {
    total.add(message_time(rates, network.ring, kernel.bytes));
  } else {
    total.add(collective_time(rates, kernel.collective, network.collective_link, bus_rate(rates, network, kernel.collective),
                              network.ring.latency, kernel.members.size, kernel.bytes, kernel.form));
  }
  return total.with_interval();
}

/// Share of the memory's rate that PyTorch's copies of strided 16-bit tensors reach: they run element by element, the slower the
/// shorter the rows that stay together. Read off yunchang's rows on even lines, whose qkvpack variants save these copies on rings
/// without an exchange: 4.4 ms of 80 for rows of 64 bytes, 1.7 of 59 for rows of 256, 2 x 8 x 67 MB each on A100.
double strided_copy_share(double row_bytes) { return 0.35 * std::pow(std::min(1.0, row_bytes / 256), 0.75); }

/// A head exchange of PyTorch reorders its tensor by destination before it leaves and by position after it has come: two passes
/// that read and write all of it (yunchang's all_to_all.py, also for a group of one rank; InternEvo's and DeepSpeed's the same).
double reordering_seconds(const MeasuredKernel& kernel, const CpTensors& tensors, double hbm, double launch) {
  const Recipe& recipe = kernel.recipe;
  const int u = a2a_ranks(recipe);
  const bool reorders = recipe.cp > 1 && (u > 1 || (kernel.synchronized && recipe.cp_comm == CpComm::kP2p && !kernel.packed_qkv));
  if (!reorders) return 0;
  const double row = 2.0 * static_cast<double>(kernel.attention.head_dim);
  const double moved = (tensors.q * 2.0 + tensors.kv).value() * 4.0;  // Q, O, K and V, twice, read and written
  const double once = moved / (strided_copy_share(row) * hbm) + 8 * launch;
  return once * ((kernel.forward ? 1 : 0) + (kernel.backward ? 1 : 0));
}

/// K and V cut out of one tensor, which zhuzilin's rings make contiguous first: read and written. In backward autograd embeds the
/// gradient of each slice in a tensor of zeros as large as both (filled, then copied into) and adds the two up. FlashAttention's
/// own kvpacked call reads and writes the slices in place.
Seconds unpacking_time(const MeasuredKernel& kernel, const CpTensors& tensors, const GpuRates& rates) {
  if (!kernel.packed_kv || kernel.recipe.cp == 1) return {};
  const Seconds forward = memory_time(rates, tensors.kv * 2.0, 2).time;
  const Seconds backward = memory_time(rates, tensors.kv * (2.0 * 1.0 + 2.0 + 3.0), 5).time;
  return (kernel.forward ? forward : Seconds()) + (kernel.backward ? backward : Seconds());
}

/// What indices instead of slices move on the last rank, a step after the first: halves of K and V are gathered, in backward the
/// fp32 halves of dK and dV too, and put back after the addition. Read and written.
Seconds indexing_time(const MeasuredKernel& kernel, const CpTensors& tensors, const GpuRates& rates) {
  if (!kernel.indexed_halves) return {};
  const Bytes gathered = tensors.kv, summed = tensors.kv4 * 2.0;
  const Seconds forward = memory_time(rates, gathered, 2).time, backward = memory_time(rates, gathered + summed, 6).time;
  return ((kernel.forward ? forward : Seconds()) + (kernel.backward ? backward : Seconds())) * (kernel.recipe.cp - 1.0);
}

/// Attention over a context-parallel group: the screen's own ring of steps on a layer that has nothing but this operator.
std::variant<Predicted, Unpredictable> predict_operator(const MeasuredKernel& kernel, Predictor& predictor) {
  const AttentionShape& shape = kernel.attention;
  Architecture model;
  model.layers = 1;
  model.heads = shape.heads;
  model.kv_heads = shape.kv_heads;
  model.head_dim = shape.head_dim;
  model.hidden = shape.heads * shape.head_dim;
  model.ffn_hidden = model.hidden;
  model.vocab = 1;
  Recipe recipe = kernel.recipe;
  recipe.micro_batch = static_cast<std::int32_t>(shape.batch);
  const std::int64_t exchange = a2a_ranks(recipe);
  if (shape.heads % exchange != 0) return Unpredictable{"illegal: query heads do not divide over the head exchange"};
  const std::int64_t chunks = recipe.shard_layout == ShardLayout::kZigzag ? 2 * recipe.cp : recipe.cp;
  if (shape.q_len % chunks != 0) return Unpredictable{"illegal: the sequence does not divide over the shards"};

  NetworkView& view = predictor.network(kernel.cluster);
  const GroupShapes shapes = group_shapes(recipe);
  view.prepare(shapes.cp_ring);
  view.prepare(shapes.cp_inner);
  const Requirements requirements;
  const GpuRates& rates = predictor.rates().of(kernel.cluster.gpu);
  const EagerHost host = eager_host(kernel, rates);
  Total total;
  const auto add_call = [&](const Mask& mask, double weight) {
    Training training;
    training.sequence = Tokens(shape.q_len);
    training.global_batch = shape.batch;
    training.mask = mask;
    const ScreenContext context{model, kernel.cluster, training, requirements, *kernel.rules, rates, view};
    operators::RankShape rank = operators::rank_shape(context, recipe);
    rank.factors = TrainingFactors{};  // an operator alone, not inside a step
    rank.library = kernel.library;
    const operators::StepTimes steps = operators::attention_steps(context, recipe, rank, false);
    Cost forward, backward;
    CpExposure exposure;
    operators::add_attention(context, recipe, steps, forward, backward, exposure);
    Cost whole;
    if (kernel.forward) whole += forward;
    if (kernel.backward) whole += backward;
    const CpTensors tensors = cp_tensors(model, training, recipe, *kernel.rules);
    const double copies = reordering_seconds(kernel, tensors, rates.peaks.hbm, rates.memory.curve.launch);
    const double gpu = whole.total().value() + copies + unpacking_time(kernel, tensors, rates).value() +
                       indexing_time(kernel, tensors, rates).value();
    const double seconds =
        kernel.synchronized ? host.before + std::max(gpu, host.whole - host.before) : std::max(gpu + host.idle, host.whole);
    // Steps, messages and merges are put together as those of a training step are.
    const bool composed = recipe.cp > 1;
    const double from_host = (seconds - gpu) * kHostSigma, waited = composed ? whole.cp.value() * kExposedSigma : 0,
                 computed = composed ? (gpu - whole.cp.value()) * kComputeSigma : 0;
    total.seconds += weight * seconds;
    total.deviation += weight * std::sqrt(whole.variance + from_host * from_host + waited * waited + computed * computed);
  };
  if (kernel.packings.empty()) add_call(Mask{}, 1.0);
  for (const std::vector<DocumentClass>& documents : kernel.packings) {
    add_call({MaskKind::kDocuments, 0, documents}, 1.0 / static_cast<double>(kernel.packings.size()));
  }
  return total.with_interval();
}

}  // namespace

std::variant<Predicted, Unpredictable> predict(const MeasuredKernel& kernel, Predictor& predictor) {
  if (kernel.seconds <= 0) return Unpredictable{"no time printed"};
  const Gpu& gpu = kernel.cluster.gpu;
  const GpuRates& rates = predictor.rates().of(gpu);
  Total total;
  switch (kernel.kind) {
    case KernelKind::kGemm: {
      const double peak = dense_peak(gpu, kernel.math).value();
      if (peak <= 0) return Unpredictable{"the device has no peak for this number format"};
      if (gemm_flops(kernel) / kernel.seconds > peak) return Unpredictable{"exceeds peak"};
      for (const GemmShape& shape : kernel.gemms) total.add(gemm_time(rates, shape, kernel.math, kernel.warm));
      return total.with_interval();
    }
    case KernelKind::kAttention: {
      const double peak = dense_peak(gpu, kernel.attention.math).value();
      if (peak <= 0) return Unpredictable{"the device has no peak for this number format"};
      if (attention_flops(kernel) / kernel.seconds > peak) return Unpredictable{"exceeds peak"};
      if (kernel.forward)
        total.add(attention_time(rates, kernel.attention, AttentionPass::kForward, kernel.library, kernel.warm));
      if (kernel.backward)
        total.add(attention_time(rates, kernel.attention, AttentionPass::kBackward, kernel.library, kernel.warm));
      return total.with_interval();
    }
    case KernelKind::kMemoryBound: {
      const Bytes traffic = kernel.forward_traffic + kernel.backward_traffic;
      if (traffic.value() / kernel.seconds > gpu.hbm.value())
        return Unpredictable{"exceeds peak of the memory (served from a cache)"};
      total.add(kernel.norm ? norm_time(rates, *kernel.norm) : memory_time(rates, traffic, kernel.passes_launched));
      return total.with_interval();
    }
    case KernelKind::kCollective:
      return predict_collective(kernel, predictor);
    case KernelKind::kDistributedAttention: {
      const double per_gpu = attention_flops(kernel) / std::max(1, kernel.recipe.cp);
      if (per_gpu / kernel.seconds > gpu.bf16.value()) return Unpredictable{"exceeds peak"};
      return predict_operator(kernel, predictor);
    }
  }
  return Unpredictable{"unknown kind of kernel"};
}

}  // namespace cpfit
