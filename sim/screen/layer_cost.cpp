#include "sim/screen/layer_cost.h"

#include <algorithm>
#include <array>

#include "model/rates/group_rate.h"
#include "model/recipe/data_ranks.h"
#include "model/traffic/collective_traffic.h"
#include "model/transformer/parameters.h"
#include "sim/screen/attention_cost.h"
#include "sim/screen/operators.h"
#include "sim/screen/stage_work.h"

namespace cpfit {

using operators::add;
using operators::RankShape;

namespace {

/// Groups of state_shards neighbours among the data ranks in rank order, the faster of cp and dp first. Where the slower axis
/// does not follow the faster one at once, a group that spans both is priced by its members along the slower, the far ones.
void shard_partially(const Recipe& recipe, GroupShape cp, GroupShape dp, GroupShapes& shapes) {
  const bool cp_first = cp_before_dp(recipe);
  const GroupShape fast = cp_first ? cp : dp, slow = cp_first ? dp : cp;
  const std::int64_t shards = shard_ranks(recipe), replicas = shard_replicas(recipe);
  const bool one_sequence = slow.size == 1 || slow.stride == fast.stride * fast.size;
  if (one_sequence) {
    shapes.dp = {fast.stride, shards};
    shapes.dp_replica = {fast.stride * shards, replicas};
  } else if (shards <= fast.size) {
    shapes.dp = {fast.stride, shards};
    shapes.dp_replica = slow;
  } else {
    shapes.dp = {slow.stride, shards / fast.size};
    shapes.dp_replica = {slow.stride * shapes.dp.size, replicas};
  }
}

}  // namespace

GroupShapes group_shapes(const Recipe& recipe) {
  GroupShapes shapes;
  shapes.tp = group_shape(recipe, Axis::kTp);
  const GroupShape cp = group_shape(recipe, Axis::kCp);
  // An all-gather spans the whole CP group in one collective; hierarchical strategies have two levels (D.4).
  shapes.cp_inner = recipe.cp_comm == CpComm::kAllGather ? cp : cp_inner_shape(recipe);
  shapes.cp_ring = recipe.cp_comm == CpComm::kAllGather ? GroupShape{cp.stride * cp.size, 1} : cp_outer_shape(recipe);
  shapes.pp = group_shape(recipe, Axis::kPp);
  const GroupShape dp = group_shape(recipe, Axis::kDp);
  // Gradients are reduced over dp*cp. Where dp follows cp in the rank order the group is one arithmetic sequence; otherwise it
  // is priced by its dp members, which are the far ones.
  shapes.dp = dp.stride == cp.stride * cp.size ? GroupShape{cp.stride, cp.size * dp.size} : dp;
  if (dp.size == 1) shapes.dp = cp;
  shapes.dp_replica = {shapes.dp.stride * shapes.dp.size, 1};
  if (recipe.state_sharding != StateSharding::kNone && shard_replicas(recipe) > 1) shard_partially(recipe, cp, dp, shapes);
  return shapes;
}

namespace {

/// Exposed part of one layer's tensor-parallel collectives, and what kernels lose that run beside the hidden part.
struct TpExposure {
  double forward = 0, backward = 0;
  double split = 0;             // of a backward for gradients of inputs alone
  double mlp_forward = 0;       // of forward: the MLP half's
  double last_scatter = 0;      // of forward: that of the MLP's output
  double repeated_gathers = 0;  // of a recompute that keeps what was scattered (SelectiveRecompute::kEverySecondMatmul)
  double sigma = 0;             // relative, of the collectives
};

/// What a job's own figures add to a collective of its group.
Seconds measured_latency(const GroupNetwork& net, CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce ? net.all_reduce_latency : net.round_latency;
}

/// Seconds of a layer's products in the order of layer_linears: QKV, projection, MLP in, MLP out.
struct Products {
  std::array<double, 4> forward{}, input_gradient{}, weight_gradient{};
};
constexpr std::array<std::size_t, 2> kColumns{0, 2}, kRows{1, 3};  // behind a gather; before a scatter

/// Fully exposed without overlap, except that backward re-gathers of saved inputs run under the input-gradient product and
/// scatters under the weight-gradient product. With overlap (TpOverlap): by user buffers a ring all-gather leaves what exceeds
/// (tp-1)/tp of its product, a pipelined reduce-scatter one chunk in four and what of the others exceeds theirs (frameworks.md
/// 3.1); behind its own shard an all-gather leaves what exceeds 1/tp of its product. Each collective has its own product: a long
/// one of the MLP hides nothing of attention's.
TpExposure tp_exposure(const ScreenContext& context, const Recipe& recipe, const Products& products) {
  TpExposure exposed;
  if (recipe.tp <= 1) return exposed;
  const TpTraffic traffic = tp_traffic(context.model, context.training, recipe);
  const GroupNetwork& net = context.network.at(group_shapes(recipe).tp);
  const auto time = [&](CollectiveKind kind, Bytes bytes) {
    const Rated rated = collective_time(context.rates, kind, net.collective_link, bus_rate(context.rates, net, kind),
                                        net.ring.latency, recipe.tp, bytes);
    exposed.sigma = std::max<double>(exposed.sigma, rated.relative_sigma);
    return (rated.time + measured_latency(net, kind)).value();
  };
  // Kernels run slower while collectives pass beside them; that too is time that tensor parallelism costs.
  const double lost = overlap_slowdown(context.rates, net.collective_link) - 1.0;
  const auto beside = [lost](double all, double waited) { return waited + (all - waited) * lost; };
  // Two collectives of `each` seconds, every one under `share` of its own product.
  const auto waits = [](double each, double share, const std::array<std::size_t, 2>& of, const std::array<double, 4>& product) {
    return std::max(0.0, each - share * product[of[0]]) + std::max(0.0, each - share * product[of[1]]);
  };
  const bool async = context.rules.tp_backward_async;
  if (traffic.forward_all_reduces > 0) {
    const double reduce = time(CollectiveKind::kAllReduce, traffic.activation);
    exposed.forward = traffic.forward_all_reduces * reduce;
    exposed.mlp_forward = exposed.forward / 2.0;
    exposed.split = traffic.backward_all_reduces * reduce;
    exposed.backward = async ? beside(exposed.split, waits(reduce, 1.0, kColumns, products.weight_gradient)) : exposed.split;
    return exposed;
  }
  const double gather = time(CollectiveKind::kAllGather, traffic.gather);
  const double scatter = time(CollectiveKind::kReduceScatter, traffic.activation);
  const bool overlap = recipe.overlap_tp && context.rules.tp_overlap != TpOverlap::kNone;
  const bool own_shard = context.rules.tp_overlap == TpOverlap::kOwnShard;
  const double covered = (own_shard ? 1.0 : recipe.tp - 1.0) / recipe.tp;
  const auto scatter_waits = [&](std::size_t row) {
    if (!overlap || own_shard) return scatter;
    return 0.25 * scatter + 0.75 * std::max(0.0, scatter - products.forward[row]);
  };
  const double gathers_wait = overlap ? waits(gather, covered, kColumns, products.forward) : 2.0 * gather;
  const double scatters_wait = scatter_waits(kRows[0]) + scatter_waits(kRows[1]);
  exposed.forward = overlap ? beside(2.0 * (gather + scatter), gathers_wait + scatters_wait) : gathers_wait + scatters_wait;
  const double mlp_waits =
      overlap ? std::max(0.0, gather - covered * products.forward[kColumns[1]]) + scatter_waits(kRows[1]) : gather + scatter;
  exposed.mlp_forward = overlap ? beside(gather + scatter, mlp_waits) : mlp_waits;
  exposed.last_scatter = overlap ? beside(scatter, scatter_waits(kRows[1])) : scatter;
  // Op-level checkpoints keep what was scattered and repeat K's product behind one gather, one of two behind the other.
  const double mlp_wait = overlap ? beside(gather, std::max(0.0, gather - covered * products.forward[2] / 2.0)) : gather;
  exposed.repeated_gathers = gather + mlp_wait;
  // Where gradients of weights come later nothing passes under the scatters, and the re-gathers under the column products alone.
  const double again = context.rules.tp_regathers_inputs ? 2.0 * gather : 0.0;
  const double again_waits = again > 0.0 ? waits(gather, 1.0, kColumns, products.input_gradient) : 0.0;
  exposed.split = 2.0 * gather + (async ? beside(again, again_waits) : again) + 2.0 * scatter;
  // Backward: 2 gathers of output gradients (before the products), 2 re-gathers of inputs, 2 scatters of input gradients.
  exposed.backward = overlap ? beside(2.0 * gather, waits(gather, covered, kRows, products.input_gradient)) : 2.0 * gather;
  const double background = again + 2.0 * scatter;
  exposed.backward +=
      async ? beside(background, again_waits + waits(scatter, 1.0, kColumns, products.weight_gradient)) : background;
  return exposed;
}

/// What a full recompute does of a layer's forward beside attention. Where it ends early the last scatter does not run again, and
/// in a compiled block nothing else behind the last tensor that backward needs: not the last product either.
Cost repeated_rest(const ScreenContext& context, const Recipe& recipe, const RankShape& shape, Cost rest, const TpExposure& tp) {
  if (recipe.recompute.kind == RecomputeKind::kSelective && recipe.sequence_parallel) {
    // As much as its share of the rest makes of it.
    const double share = repeated_by_selective(context.rules).rest;
    if (share > 0.0) rest.tp = Seconds(tp.repeated_gathers / share);
  }
  const bool whole_layers = recipe.recompute.kind == RecomputeKind::kFull || recipe.recompute.kind == RecomputeKind::kBlock;
  if (!context.rules.recompute_ends_early || !whole_layers) return rest;
  rest.tp -= Seconds(tp.last_scatter);
  rest.compute -= operators::last_scatter_copy(context, recipe, shape);
  if (context.rules.fused_elementwise) {
    rest.compute -= operators::linear_forward(context, shape, operators::layer_linears(context, recipe, shape).back()).time;
  }
  return rest;
}

/// The MLP half of a layer's forward: norm, both products, activation, and its tensor-parallel collectives.
Cost mlp_half(const ScreenContext& context, const Recipe& recipe, const RankShape& shape, const TpExposure& tp) {
  Cost half;
  const std::array<operators::Linear, 4> linears = operators::layer_linears(context, recipe, shape);
  const operators::ElementwiseShares shares = operators::elementwise_shares(context, recipe, shape, false);
  Rated elementwise = operators::elementwise(context, recipe, shape, false);
  elementwise.time = elementwise.time * (0.5 * shares.residual + shares.activation);
  bool in_range = true;  // the whole layer says it
  for (const std::size_t product : {kColumns[1], kRows[1]})
    add(half, in_range, operators::linear_forward(context, shape, linears[product]));
  add(half, in_range, elementwise);
  half.tp = Seconds(tp.mlp_forward);
  half.variance += tp.sigma * tp.mlp_forward * tp.sigma * tp.mlp_forward;
  half.host = operators::host_call(context) * operators::host_calls(context, recipe).mlp_forward;
  return half;
}

void add_ends(const ScreenContext& context, const Recipe& recipe, const RankShape& shape, LayerCost& layer) {
  const double h = static_cast<double>(context.model.hidden);
  const double vocab =
      static_cast<double>(padded_vocab(context.model.vocab, context.training.vocab_divisor, recipe.tp)) / recipe.tp;
  add(layer.head_forward, layer.gemm_in_range, operators::linear_forward(context, shape, vocab, h, MathKind::kBf16));
  add(layer.head_backward, layer.gemm_in_range, operators::linear_backward(context, shape, vocab, h, MathKind::kBf16));
  add(layer.head_weights, layer.gemm_in_range, operators::linear_weight_gradient(context, shape, vocab, h, MathKind::kBf16));
  // Loss: logits written, read for max and sum, softmax written in the saved dtype, gradient read and written; a loss of separate
  // kernels moves what its rule set says.
  const double per_logit = context.rules.loss_traffic_bytes_per_logit > 0.0
                               ? context.rules.loss_traffic_bytes_per_logit
                               : 2.0 * 2.0 + 3.0 * context.rules.loss_saved_bytes_per_logit + 2.0;
  const double loss_bytes = shape.tokens * vocab * per_logit;
  add(layer.head_forward, layer.memory_in_range, memory_time(context.rates, Bytes(loss_bytes), 1));
  // Embedding rows read and written forward, gradients scattered backward.
  add(layer.embedding, layer.memory_in_range, memory_time(context.rates, Bytes(shape.tokens * h / shape.split * 2.0 * 4.0), 2));
  const Seconds call = operators::host_call(context);
  layer.head_forward.host = call * (operators::kForwardCalls * operators::kHeadForwardKernels);
  layer.head_backward.host = call * operators::kHeadBackwardKernels;
  layer.embedding.host = call * (operators::kForwardCalls + 1);
  if (recipe.tp <= 1) return;
  const TpTraffic traffic = tp_traffic(context.model, context.training, recipe);
  const GroupNetwork& net = context.network.at(group_shapes(recipe).tp);
  const auto time = [&](CollectiveKind kind, Bytes bytes) {
    return collective_time(context.rates, kind, net.collective_link, bus_rate(context.rates, net, kind), net.ring.latency,
                           recipe.tp, bytes)
               .time +
           measured_latency(net, kind);
  };
  const CollectiveKind gather = recipe.sequence_parallel ? CollectiveKind::kAllGather : CollectiveKind::kAllReduce;
  const CollectiveKind scatter = recipe.sequence_parallel ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce;
  layer.embedding.tp += time(scatter, traffic.activation) * 2.0;  // reduce-scatter forward, gather backward
  if (recipe.sequence_parallel) layer.head_forward.tp += time(gather, traffic.activation);
  layer.head_backward.tp += time(scatter, traffic.activation);
  // Vocabulary-parallel loss: three all-reduces of one fp32 number per token (max, predicted logit, sum of exponentials).
  layer.head_forward.tp += time(CollectiveKind::kAllReduce, Bytes(4.0 * shape.tokens)) * 3.0;
}

}  // namespace

LayerCost end_costs(const ScreenContext& context, const Recipe& recipe) {
  LayerCost ends;
  add_ends(context, recipe, operators::rank_shape(context, recipe), ends);
  return ends;
}

std::int64_t windowed_layers(const ScreenContext& context, std::int64_t first, std::int64_t count) {
  return context.training.mask.kind == MaskKind::kSlidingWindow ? count : context.model.windowed_layers(first, count);
}

LayerCost layer_cost(const ScreenContext& context, const Recipe& recipe) {
  LayerCost layer;
  const RankShape shape = operators::rank_shape(context, recipe);
  LayerPasses common;
  Products products;
  const std::array<operators::Linear, 4> linears = operators::layer_linears(context, recipe, shape);
  for (std::size_t i = 0; i < linears.size(); ++i) {
    const Rated forward = operators::linear_forward(context, shape, linears[i]);
    const Rated backward = operators::linear_backward(context, shape, linears[i]);
    const Rated weights = operators::linear_weight_gradient(context, shape, linears[i]);
    add(common.forward, layer.gemm_in_range, forward);
    add(common.backward, layer.gemm_in_range, backward);
    add(layer.weights, layer.gemm_in_range, weights);
    products.forward[i] = forward.time.value();
    products.weight_gradient[i] = weights.time.value();
    products.input_gradient[i] = (backward.time - weights.time).value();
  }
  const TpExposure tp = tp_exposure(context, recipe, products);
  common.forward.tp = Seconds(tp.forward);
  common.backward.tp = Seconds(tp.backward);
  layer.split_tp = Seconds(tp.split - tp.backward);
  common.forward.variance += tp.sigma * tp.forward * tp.sigma * tp.forward;
  common.backward.variance += tp.sigma * tp.backward * tp.sigma * tp.backward;
  add(common.forward, layer.memory_in_range, operators::elementwise(context, recipe, shape, false));
  add(common.backward, layer.memory_in_range, operators::elementwise(context, recipe, shape, true));

  if (context.rules.recompute_mlp) common.mlp_forward = mlp_half(context, recipe, shape, tp);

  const std::int64_t windowed = windowed_layers(context, 0, context.model.layers);
  for (const bool window : {false, true}) {
    if ((window ? windowed : context.model.layers - windowed) == 0) continue;
    const operators::StepTimes steps = operators::attention_steps(context, recipe, shape, window);
    layer.attention_in_range = layer.attention_in_range && steps.in_range;
    LayerPasses& passes = window ? layer.windowed : layer.global;
    Cost attention_backward;
    CpExposure exposure;
    operators::add_attention(context, recipe, steps, passes.attention_forward, attention_backward, exposure);
    passes.forward = common.forward;
    passes.rest_forward = repeated_rest(context, recipe, shape, common.forward, tp);
    passes.mlp_forward = common.mlp_forward;
    passes.backward = common.backward;
    passes.forward += passes.attention_forward;
    passes.backward += attention_backward;
    const operators::HostCalls calls = operators::host_calls(context, recipe);
    const Seconds call = operators::host_call(context);
    passes.attention_forward.host = call * calls.attention_forward;
    passes.rest_forward.host = call * calls.rest_forward;
    passes.forward.host = passes.attention_forward.host + passes.rest_forward.host;
    passes.backward.host = call * calls.backward;
    if (exposure.forward_exposed + exposure.backward_exposed >= layer.cp.forward_exposed + layer.cp.backward_exposed)
      layer.cp = exposure;
  }
  add_ends(context, recipe, shape, layer);
  return layer;
}

}  // namespace cpfit
