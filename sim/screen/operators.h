// Kernels of one layer as costs: matrix products, memory-bound operators, casts. Private to the screen.
#pragma once

#include <array>

#include "sim/screen/layer_cost.h"

namespace cpfit::operators {

/// What the kernels of one rank see: sizes after tensor and context parallelism.
struct RankShape {
  double tokens = 0;    // T = b*s/cp
  double heads = 0;     // query heads on this rank
  double kv_heads = 0;  // KV heads on this rank, at least 1
  double split = 1;     // tp where the residual stream is split (sequence parallelism), else 1
  StateSharding state_sharding = StateSharding::kNone;
  MathKind math = MathKind::kBf16;
  AttentionLibrary library = AttentionLibrary::kCudnn;
  TrainingFactors factors;
};
[[nodiscard]] RankShape rank_shape(const ScreenContext& context, const Recipe& recipe);

/// Adds a rated time to a cost's compute, `count` times; clears `in_range` (of the surface it came from) when it lay outside.
void add(Cost& cost, bool& in_range, const Rated& rated, double count = 1.0);

/// One linear of a layer on this rank: C(T, n) = A(T, k) B(k, n), in the order QKV, projection, MLP in, MLP out. Where a
/// framework keeps its parts (q, k, v; gate, up) as products of their own, `parts` are their n; all 0 where it is one product.
/// `pieces` are the shares of the rows that the product behind a gather (forward of QKV and MLP in, input gradient of the others)
/// takes at a time: its own shard while the others' arrive, then those before and those behind it; one where nothing is cut.
struct Linear {
  double n = 0, k = 0;
  std::array<double, 3> parts{};
  std::array<double, 3> pieces{1.0, 0.0, 0.0};
  bool column = false;  // QKV, MLP in
};
[[nodiscard]] std::array<Linear, 4> layer_linears(const ScreenContext& context, const Recipe& recipe, const RankShape& shape);

/// One linear (T, n, k): forward product. The head runs in bf16 whatever the recipe.
[[nodiscard]] Rated linear_forward(const ScreenContext& context, const RankShape& shape, double n, double k, MathKind math);
/// The backward products: dX = dY W, dW = dY^T X, and both.
[[nodiscard]] Rated linear_input_gradient(const ScreenContext& context, const RankShape& shape, double n, double k,
                                          MathKind math);
[[nodiscard]] Rated linear_weight_gradient(const ScreenContext& context, const RankShape& shape, double n, double k,
                                           MathKind math);
[[nodiscard]] Rated linear_backward(const ScreenContext& context, const RankShape& shape, double n, double k, MathKind math);
/// The same of a layer's linear, part by part; input gradients of the parts are added up in passes over memory.
[[nodiscard]] Rated linear_forward(const ScreenContext& context, const RankShape& shape, const Linear& linear);
[[nodiscard]] Rated linear_input_gradient(const ScreenContext& context, const RankShape& shape, const Linear& linear);
[[nodiscard]] Rated linear_weight_gradient(const ScreenContext& context, const RankShape& shape, const Linear& linear);
[[nodiscard]] Rated linear_backward(const ScreenContext& context, const RankShape& shape, const Linear& linear);

/// Where a layer's element-wise traffic belongs, as shares of it: one half of norms and residual additions goes with attention,
/// the other with the MLP; casts go with the norms.
struct ElementwiseShares {
  double residual = 0, rope = 0, activation = 0;
};
[[nodiscard]] ElementwiseShares elementwise_shares(const ScreenContext& context, const Recipe& recipe, const RankShape& shape,
                                                   bool backward);

/// Of that, in forward, the copy of what the last scatter takes.
[[nodiscard]] Seconds last_scatter_copy(const ScreenContext& context, const Recipe& recipe, const RankShape& shape);

/// Norms, residuals, RoPE, activation function, casts of FP8 recipes: forward and backward share of a layer's traffic.
[[nodiscard]] Rated elementwise(const ScreenContext& context, const Recipe& recipe, const RankShape& shape, bool backward);

/// Kernels a layer launches, beside the further steps of a ring and the collectives of tensor parallelism.
inline constexpr int kForwardKernels = 14;    // 2 norms, 4 linears, rope 2, attention, activation, 2 residuals, 2 copies
inline constexpr int kMlpForwardKernels = 7;  // of those the MLP half's: norm and copies 3, 2 linears, activation, residual
inline constexpr int kBackwardKernels = 26;   // twice the linears, norm backward, attention backward 3, gradient adds
inline constexpr int kHeadForwardKernels = 4, kHeadBackwardKernels = 3;  // norm, product, loss

/// Calls of the host a kernel of forward costs, where one of backward costs one: forward runs in Python, which writes down what
/// backward does in C++. By the host's time both passes of a layer are alike, in Megatron-LM's golden iteration times (a layer
/// run again adds half of one) as in nanotron's sweep (2.2 ms each), with 14 and 26 kernels.
inline constexpr int kForwardCalls = 2;

/// What the host calls for one layer and micro-batch: kernels, one more per further ring step (two in backward), gathers and
/// scatters of sequence parallelism. All-reduces add nothing that those times show.
struct HostCalls {
  int attention_forward = 0, rest_forward = 0, backward = 0;
  int mlp_forward = 0;  // of the rest
};
[[nodiscard]] HostCalls host_calls(const ScreenContext& context, const Recipe& recipe);
/// Host time of one of them: the framework's (RuleSet::host_call_us) on this cluster's CPU, where it is not known, or layers are
/// captured in CUDA graphs, the driver's launch.
[[nodiscard]] Seconds host_call(const ScreenContext& context);

}  // namespace cpfit::operators
