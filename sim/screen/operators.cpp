#include "sim/screen/operators.h"

#include <algorithm>
#include <cmath>

namespace cpfit {

Cost& Cost::operator+=(const Cost& other) {
  compute += other.compute;
  cp += other.cp;
  tp += other.tp;
  launch += other.launch;
  host += other.host;
  variance += other.variance;
  return *this;
}

Cost operator*(const Cost& cost, double count) {
  Cost scaled;
  scaled.compute = cost.compute * count;
  scaled.cp = cost.cp * count;
  scaled.tp = cost.tp * count;
  scaled.launch = cost.launch * count;
  scaled.host = cost.host * count;
  scaled.variance = cost.variance * count * count;
  return scaled;
}

namespace operators {

namespace {

MathKind math_of(Precision precision) {
  switch (precision) {
    case Precision::kBf16:
    case Precision::kFp16:
      return MathKind::kBf16;
    case Precision::kFp8Delayed:
    case Precision::kFp8Current:
      return MathKind::kFp8Tensor;
    case Precision::kFp8Block:
      return MathKind::kFp8Block;
    case Precision::kMxfp8:
      return MathKind::kMxfp8;
    case Precision::kNvfp4:
      return MathKind::kNvfp4;
  }
  return MathKind::kBf16;
}

AttentionLibrary library_of(AttentionBackend backend) {
  switch (backend) {
    case AttentionBackend::kCudnn:
      return AttentionLibrary::kCudnn;
    case AttentionBackend::kFlash3:
      return AttentionLibrary::kFlash3;
    case AttentionBackend::kFlash2:
    case AttentionBackend::kUnfused:
    case AttentionBackend::kTriton:
      return AttentionLibrary::kFlash2;
  }
  return AttentionLibrary::kCudnn;
}

bool is_sixteen_bit(Precision precision) { return precision == Precision::kBf16 || precision == Precision::kFp16; }

std::int64_t whole(double value) { return std::max<std::int64_t>(1, std::llround(value)); }

Rated scaled(Rated rated, double factor) {
  rated.time *= factor;
  return rated;
}

/// Bytes read and written per element to cast one tensor for low-precision products (frameworks.md 1.5): delayed scaling reads
/// 2 and writes 1, and is fused into the producing kernel; current scaling reads twice; block scales add 1/32. Products of one
/// scale per tensor take their operands either way round on Blackwell, on Hopper a transposed copy stands beside each.
double cast_bytes_per_element(Precision precision, bool one_buffer_both_ways) {
  const double transposed = one_buffer_both_ways ? 0.0 : 1.0;
  switch (precision) {
    case Precision::kBf16:
    case Precision::kFp16:
      return 0.0;
    case Precision::kFp8Delayed:
      return 2.0 + 1.0 + transposed;
    case Precision::kFp8Current:
      return 2.0 + 2.0 + 1.0 + transposed;  // amax pass first
    case Precision::kFp8Block:
      return 2.0 + 2.0 * (1.0 + 1.0 / 32.0);
    case Precision::kMxfp8:
      return 2.0 + 2.0 * (1.0 + 1.0 / 32.0);
    case Precision::kNvfp4:
      return 2.0 + 2.0 + 2.0 * (0.5 + 1.0 / 16.0);
  }
  return 0.0;
}

}  // namespace

RankShape rank_shape(const ScreenContext& context, const Recipe& recipe) {
  RankShape shape;
  shape.tokens = static_cast<double>(recipe.micro_batch) * static_cast<double>(context.training.sequence.count()) / recipe.cp;
  shape.heads = static_cast<double>(context.model.heads) / recipe.tp;
  shape.kv_heads = std::max(1.0, static_cast<double>(context.model.kv_heads) / recipe.tp);
  shape.split = recipe.sequence_parallel ? recipe.tp : 1;
  shape.math = math_of(recipe.precision);
  shape.library = library_of(attention_backend_on(context.rules, context.cluster.gpu.generation, context.model.head_dim));
  shape.state_sharding = recipe.state_sharding;
  shape.factors = training_factors(context.rates, shape.math, shape.library);
  return shape;
}

void add(Cost& cost, bool& in_range, const Rated& rated, double count) {
  cost.compute += rated.time * count;
  const double sigma = rated.time.value() * count * rated.relative_sigma;
  cost.variance += sigma * sigma;
  in_range = in_range && rated.in_range;
}

namespace {

Rated product(const ScreenContext& context, const RankShape& shape, double m, double n, double k, MathKind math) {
  return scaled(gemm_time(context.rates, {whole(m), whole(n), whole(k)}, math, shape.factors.gemm_warm), shape.factors.gemm);
}

/// What adding a weight gradient to the buffer of gradients costs beyond storing the product in 2 bytes: the sum is read and
/// written in the buffer's type, by the product's last lines, where nothing hides it. On 107 weight gradients of SimuMax's B200
/// table (out_dtype fp32, accumulate) against the same products without it, 0.72 of that traffic's time at full HBM rate shows
/// with 2k tokens, 0.90 with 4k; on 35 of its A100 table (4k tokens) 0.65. Here at the rate of streaming kernels (0.85), so 0.75
/// and 0.55.
Seconds accumulation_time(const ScreenContext& context, StateSharding sharding, double n, double k) {
  constexpr double kShownOnAmpere = 0.55, kShownLater = 0.75, kStreamShare = 0.85;
  const bool own_pass = context.rules.accumulation_traffic_per_parameter > 0.0;
  if (own_pass || sharding == StateSharding::kZero3) return {};  // a pass of its own, or a fresh gradient each time
  const double sum = context.training.grad_dtype == GradDtype::kFp32 ? 4.0 : 2.0;
  const double shown = context.cluster.gpu.generation == "ampere" ? kShownOnAmpere : kShownLater;
  return Bytes((2.0 * sum - 2.0) * n * k * shown) / (kStreamShare * context.cluster.gpu.hbm);
}

}  // namespace

Rated linear_forward(const ScreenContext& context, const RankShape& shape, double n, double k, MathKind math) {
  return product(context, shape, shape.tokens, n, k, math);
}

Rated linear_input_gradient(const ScreenContext& context, const RankShape& shape, double n, double k, MathKind math) {
  return product(context, shape, shape.tokens, k, n, math);
}

Rated linear_weight_gradient(const ScreenContext& context, const RankShape& shape, double n, double k, MathKind math) {
  Rated rated = product(context, shape, n, k, shape.tokens, math);
  rated.time += accumulation_time(context, shape.state_sharding, n, k);
  return rated;
}

namespace {

Rated both(Rated sum, const Rated& more) {
  sum.time += more.time;
  sum.in_range = sum.in_range && more.in_range;
  sum.relative_sigma = std::max(sum.relative_sigma, more.relative_sigma);
  return sum;
}

/// The sum over a linear's parts of `one(n)`, or one(n) of the whole.
template <class One>
Rated over_parts(const Linear& linear, const One& one) {
  if (linear.parts[0] <= 0.0) return one(linear.n);
  Rated sum = one(linear.parts[0]);
  for (std::size_t i = 1; i < linear.parts.size(); ++i) {
    if (linear.parts[i] > 0.0) sum = both(sum, one(linear.parts[i]));
  }
  return sum;
}

/// The sum over a linear's pieces of `one(shape)` with as many tokens, or one(shape) of all.
template <class One>
Rated over_pieces(const RankShape& shape, const Linear& linear, bool cut, const One& one) {
  if (!cut || linear.pieces[0] >= 1.0) return one(shape);
  RankShape piece = shape;
  piece.tokens = shape.tokens * linear.pieces[0];
  Rated sum = one(piece);
  for (std::size_t i = 1; i < linear.pieces.size(); ++i) {
    if (linear.pieces[i] <= 0.0) continue;
    piece.tokens = shape.tokens * linear.pieces[i];
    sum = both(sum, one(piece));
  }
  return sum;
}

}  // namespace

Rated linear_backward(const ScreenContext& context, const RankShape& shape, double n, double k, MathKind math) {
  return both(linear_input_gradient(context, shape, n, k, math), linear_weight_gradient(context, shape, n, k, math));
}

Rated linear_forward(const ScreenContext& context, const RankShape& shape, const Linear& linear) {
  return over_pieces(shape, linear, linear.column, [&](const RankShape& piece) {
    return over_parts(linear, [&](double n) { return linear_forward(context, piece, n, linear.k, shape.math); });
  });
}

Rated linear_input_gradient(const ScreenContext& context, const RankShape& shape, const Linear& linear) {
  Rated sum = over_pieces(shape, linear, !linear.column, [&](const RankShape& piece) {
    return over_parts(linear, [&](double n) { return linear_input_gradient(context, piece, n, linear.k, shape.math); });
  });
  const auto parts = static_cast<double>(std::count_if(linear.parts.begin(), linear.parts.end(), [](double n) { return n > 0; }));
  if (parts < 2.0) return sum;
  // Added up two by two, each sum read and written, or in one kernel where a compiler fuses them.
  const double tensors = context.rules.fused_elementwise ? parts + 1.0 : 3.0 * (parts - 1.0);
  sum.time += memory_time(context.rates, Bytes(2.0 * tensors * shape.tokens * linear.k), 1).time;
  return sum;
}

Rated linear_weight_gradient(const ScreenContext& context, const RankShape& shape, const Linear& linear) {
  return over_parts(linear, [&](double n) { return linear_weight_gradient(context, shape, n, linear.k, shape.math); });
}

Rated linear_backward(const ScreenContext& context, const RankShape& shape, const Linear& linear) {
  return both(linear_input_gradient(context, shape, linear), linear_weight_gradient(context, shape, linear));
}

std::array<Linear, 4> layer_linears(const ScreenContext& context, const Recipe& recipe, const RankShape& shape) {
  const Architecture& model = context.model;
  const double h = static_cast<double>(model.hidden), d = static_cast<double>(model.head_dim);
  const double f = static_cast<double>(model.ffn_hidden) / recipe.tp;
  const std::array<double, 3> whole{1.0, 0.0, 0.0};
  std::array<Linear, 4> linears{{{(shape.heads + 2.0 * shape.kv_heads) * d, h, {}, whole, true},
                                 {h, shape.heads * d, {}, whole, false},
                                 {model.gated() ? 2.0 * f : f, h, {}, whole, true},
                                 {h, f, {}, whole, false}}};
  if (recipe.overlap_tp && recipe.tp > 1 && recipe.sequence_parallel && context.rules.tp_overlap == TpOverlap::kOwnShard) {
    // A rank in the middle of the group, which the others wait for: some shards lie before its own, the rest behind.
    const double others = recipe.tp - 1.0, before = std::floor(others / 2.0);
    for (Linear& linear : linears) linear.pieces = {1.0 / recipe.tp, (others - before) / recipe.tp, before / recipe.tp};
  }
  if (context.rules.separate_projections) {
    linears[0].parts = {shape.heads * d, shape.kv_heads * d, shape.kv_heads * d};
    if (model.gated()) linears[2].parts = {f, f, 0.0};
  }
  return linears;
}

namespace {

/// Bytes that element-wise kernels of one layer read and write per token.
struct ElementwiseBytes {
  double residual = 0, rope = 0, activation = 0, cast = 0;
};

/// Copies around the gathers and scatters of the sequence in a pass, bytes per token: PyTorch's collectives join and cut the
/// first dimension, the sequence is the second, so what a gather brings and what a scatter takes is cut into the ranks' pieces
/// and joined anew, read and written once. Asynchronous tensor parallelism gathers into place; its scatter adds up the pieces,
/// which reads them once, in forward; in backward the sum of several input gradients stands between product and scatter, which
/// stays an ordinary one (torch/_inductor/fx_passes/micro_pipeline_tp.py).
struct SequenceCopies {
  double gather = 0, scatter = 0;  // one of each; two of both are in a pass
};

SequenceCopies sequence_copies(const ScreenContext& context, const Recipe& recipe, bool backward) {
  if (!context.rules.tp_copies_sequence || recipe.tp <= 1 || !recipe.sequence_parallel) return {};
  const double h = static_cast<double>(context.model.hidden);
  const double gathered = is_sixteen_bit(recipe.precision) ? 2.0 : 1.0;
  return {recipe.overlap_tp ? 0.0 : 2.0 * gathered * h, recipe.overlap_tp && !backward ? 2.0 * h : 4.0 * h};
}

ElementwiseBytes elementwise_bytes(const ScreenContext& context, const Recipe& recipe, const RankShape& shape, bool backward) {
  const Architecture& model = context.model;
  const double h = static_cast<double>(model.hidden);
  const double f = static_cast<double>(model.ffn_hidden);
  const double d = static_cast<double>(model.head_dim);
  // Fused kernels, bf16, elements read and written per token. The residual stream (norms, residual additions) is split over tp
  // only with sequence parallelism; RoPE and the activation always are.
  //   forward: two norms 4H, two residual additions 6H | RoPE on q and k 2(a+g)d | activation F_in + F
  //   backward: norms 2*3H, residual gradients 6H | RoPE 2(a+g)d | activation (F_in + F) read, F_in written
  const double f_in = model.gated() ? 2.0 * f : f;
  // Eager element-wise operators write every intermediate to memory: three times the fused traffic (accuracy_notes 3.3).
  constexpr double kEagerTraffic = 3.0;
  const RuleSet& rules = context.rules;
  const double per_element = 2.0 * (rules.fused_elementwise ? 1.0 : kEagerTraffic);
  ElementwiseBytes bytes;
  bytes.rope = per_element * rules.rope_traffic_factor * 2.0 * (shape.heads + shape.kv_heads) * d;
  bytes.residual = per_element * rules.residual_traffic_factor * (backward ? 12.0 : 10.0) * h / shape.split *
                   (static_cast<double>(model.norms_per_layer) / 2.0);
  if (model.hidden_dropout > 0.0) {
    // Two per layer, fused with the additions in forward: byte masks written. Backward is a pass of its own: gradient and mask
    // read, gradient written.
    bytes.residual += 2.0 * (backward ? 2.0 * (1.0 + 0.5 + 1.0) : 2.0 * 0.5) * h / shape.split;
  }
  const SequenceCopies copies = sequence_copies(context, recipe, backward);
  bytes.residual += 2.0 * (copies.gather + copies.scatter);
  bytes.activation = per_element * rules.activation_traffic_factor * (backward ? 2.0 * f_in + f : f_in + f) / recipe.tp;
  const double cast = cast_bytes_per_element(recipe.precision, context.cluster.gpu.generation == "blackwell");
  if (cast > 0.0) {
    const double inputs = 2.0 * h / shape.split + shape.heads * d + f / recipe.tp;
    const double gradients = (shape.heads + 2.0 * shape.kv_heads) * d + 2.0 * h / shape.split + f_in / recipe.tp;
    bytes.cast = cast * (backward ? gradients : inputs);
  }
  return bytes;
}

}  // namespace

Seconds last_scatter_copy(const ScreenContext& context, const Recipe& recipe, const RankShape& shape) {
  const double bytes = sequence_copies(context, recipe, false).scatter * shape.tokens;
  return bytes > 0.0 ? memory_time(context.rates, Bytes(bytes), 0).time : Seconds();
}

Rated elementwise(const ScreenContext& context, const Recipe& recipe, const RankShape& shape, bool backward) {
  const ElementwiseBytes bytes = elementwise_bytes(context, recipe, shape, backward);
  const double per_token = bytes.residual + bytes.rope + bytes.activation + bytes.cast;
  return memory_time(context.rates, Bytes(per_token * shape.tokens), 1);
}

ElementwiseShares elementwise_shares(const ScreenContext& context, const Recipe& recipe, const RankShape& shape, bool backward) {
  const ElementwiseBytes bytes = elementwise_bytes(context, recipe, shape, backward);
  const double sum = bytes.residual + bytes.rope + bytes.activation + bytes.cast;
  return {(bytes.residual + bytes.cast) / sum, bytes.rope / sum, bytes.activation / sum};
}

HostCalls host_calls(const ScreenContext& context, const Recipe& recipe) {
  HostCalls calls;
  calls.attention_forward = kForwardCalls * recipe.cp;  // a kernel a step
  calls.rest_forward = kForwardCalls * (kForwardKernels - 1);
  calls.mlp_forward = kForwardCalls * kMlpForwardKernels;
  calls.backward = kBackwardKernels + 2 * (recipe.cp - 1);
  if (recipe.tp <= 1 || !recipe.sequence_parallel) return calls;
  calls.rest_forward += kForwardCalls * 4;
  calls.mlp_forward += kForwardCalls * 2;
  calls.backward += context.rules.tp_regathers_inputs ? 6 : 4;
  return calls;
}

Seconds host_call(const ScreenContext& context) {
  if (context.training.cuda_graphs) return launch_cost(context.rates, true);
  if (context.rules.host_call_us <= 0) return launch_cost(context.rates, false);
  constexpr double kMicrosecond = 1e-6;
  return Seconds(context.rules.host_call_us * kMicrosecond * context.cluster.cpu_slowdown);
}

}  // namespace operators
}  // namespace cpfit
