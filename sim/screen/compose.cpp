// From one layer's cost to a step: recompute, pipeline, data parallelism, optimizer; memory and verdict beside it.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "model/rates/dense_peak.h"
#include "model/rates/group_rate.h"
#include "model/traffic/collective_traffic.h"
#include "model/transformer/flops.h"
#include "model/transformer/parameters.h"
#include "sim/screen/composition.h"
#include "sim/screen/gradient_units.h"
#include "sim/screen/layer_cost.h"
#include "sim/screen/pipeline_time.h"
#include "sim/screen/real_tokens.h"
#include "sim/screen/sharded_time.h"
#include "sim/screen/stage_work.h"

namespace cpfit {

namespace {

/// One micro-batch on one stage.
struct StageCost {
  Cost forward, backward;
  Seconds weights;  // part of backward
  double layers = 0;
  Repeated repeated;  // in layers
};

/// Layers of one kind that a stage holds: all its layers but in models that alternate.
void add_layers(const LayerPasses& layer, double layers, const Repeated& repeated, StageCost& stage) {
  stage.forward += layer.forward * layers;
  stage.backward += layer.backward * layers;
  // The rest of a layer is its forward without core attention; a whole layer again is both.
  stage.backward += layer.attention_forward * repeated.attention;
  stage.backward += layer.rest_forward * repeated.rest;
  stage.backward += layer.mlp_forward * repeated.mlp;
}

/// What the host is late. It calls one kernel after the other and does not wait for them, but mostly it does between passes: for
/// a message of the pipeline that nothing overlaps (Megatron p2p_communication.py synchronises the device behind a batch of
/// sends), for the loss, for the upload of a batch. Then what it comes ahead in backward covers nothing of the next forward, as
/// nanotron's sweep shows. `read`: kernels whose result it reads before it goes on, so that it gains nothing by them.
void wait_for_host(const Recipe& recipe, Seconds read, Cost& forward, Cost& backward) {
  const auto late = [](const Cost& pass) { return pass.host - pass.total(); };
  Seconds in_forward = late(forward) + read, in_backward = late(backward);
  if (recipe.pp > 1 && recipe.overlap_p2p) {
    const Seconds ahead_in_forward = std::min(Seconds(), in_forward);
    in_forward += std::min(Seconds(), in_backward);
    in_backward += ahead_in_forward;
  }
  forward.launch = std::max(Seconds(), in_forward);
  backward.launch = std::max(Seconds(), in_backward);
}

/// `windowed` of the `layers` attend through a window. Block recompute is taken to repeat both kinds alike.
StageCost stage_cost(const Recipe& recipe, const RuleSet& rules, const LayerCost& layer, double layers, double windowed,
                     bool first, bool last) {
  StageCost stage;
  stage.layers = layers;
  stage.repeated = repeated_on(recipe, rules, layers);
  for (const bool window : {true, false}) {
    const double count = window ? windowed : layers - windowed;
    if (count <= 0.0) continue;
    add_layers(window ? layer.windowed : layer.global, count, stage.repeated * (count / layers), stage);
  }
  if (first) stage.forward += layer.embedding;
  if (last) {
    stage.forward += layer.head_forward;
    stage.backward += layer.head_backward;
  }
  if (split_backward(recipe)) {
    stage.backward.tp += layer.split_tp * layers;
    stage.weights = layer.weights.compute * layers;
    if (last) stage.weights += layer.head_weights.compute;
  }
  const bool reads = last && rules.host_reads_loss;
  wait_for_host(recipe, reads ? layer.head_forward.total() : Seconds(), stage.forward, stage.backward);
  return stage;
}

/// Where a model's windowed layers lie in the pipeline; `uneven`: some chunks of equal length hold more of them than others.
struct WindowedLayers {
  std::vector<double> of_stage;  // (pp)
  std::vector<double> of_chunk;  // (pp*vpp) only where a model alternates
  bool uneven = false;
};

WindowedLayers windowed_by_stage(const ScreenContext& context, const ResolvedLayout& layout) {
  WindowedLayers windowed;
  const std::int64_t all = windowed_layers(context, 0, context.model.layers);
  if (all == 0 || all == context.model.layers) {
    for (const std::int32_t layers : layout.layers_of_stage) windowed.of_stage.push_back(all == 0 ? 0.0 : layers);
    return windowed;
  }
  windowed.of_stage.assign(layout.layers_of_stage.size(), 0.0);
  std::int64_t first = 0;
  for (std::size_t chunk = 0; chunk < layout.layers_of_chunk.size(); ++chunk) {
    const std::int64_t layers = layout.layers_of_chunk[chunk];
    const double here = static_cast<double>(windowed_layers(context, first, layers));
    windowed.uneven = windowed.uneven || (chunk > 0 && here != windowed.of_chunk.front());
    windowed.of_chunk.push_back(here);
    windowed.of_stage[chunk % windowed.of_stage.size()] += here;
    first += layers;
  }
  return windowed;
}

/// Idle time of the slowest stage when chunks differ: what the turns take beyond that stage's own work.
double uneven_bubble(const ScreenContext& context, const Recipe& recipe, const ResolvedLayout& layout, const LayerCost& layer,
                     const WindowedLayers& windowed, double micro_batches, double busy) {
  std::vector<double> forward, backward;
  for (std::size_t chunk = 0; chunk < windowed.of_chunk.size(); ++chunk) {
    const StageCost cost = stage_cost(recipe, context.rules, layer, layout.layers_of_chunk[chunk], windowed.of_chunk[chunk],
                                      chunk == 0, chunk + 1 == windowed.of_chunk.size());
    forward.push_back(cost.forward.total().value());
    backward.push_back(cost.backward.total().value());
  }
  return std::max(0.0, pipeline_time(recipe, static_cast<std::int64_t>(micro_batches), forward, backward) - busy);
}

/// Idle time of the slowest stage under ZB-H1: what the turns take beyond that stage's own work. Equal stages leave
/// (pp - 1) (F + B - W), B without W.
double zero_bubble(const Recipe& recipe, const std::vector<StageCost>& stages, double micro_batches, double busy) {
  std::vector<double> forward, inputs, weights;
  for (const StageCost& stage : stages) {
    forward.push_back(stage.forward.total().value());
    inputs.push_back((stage.backward.total() - stage.weights).value());
    weights.push_back(stage.weights.value());
  }
  return std::max(0.0, pipeline_time(recipe, static_cast<std::int64_t>(micro_batches), forward, inputs, weights) - busy);
}

/// Collectives in which a stage reduces its gradients: buckets, but with a pipeline one per chunk where stages beyond the first
/// do not cut theirs, for the slowest stage sets the pace. Without overlap none is cut (distributed_data_parallel.py: "Set
/// bucket_size to infinity if overlap_grad_reduce is False").
double gradient_buckets(const ScreenContext& context, const Recipe& recipe, const DpTraffic& traffic, double parameters,
                        double layers) {
  if ((recipe.pp > 1 || !recipe.overlap_grad_reduce) && !context.rules.buckets_on_every_stage) return recipe.vpp;
  if (context.rules.buckets_of_whole_tensors) return whole_tensor_buckets(context, recipe, parameters, layers);
  return std::max(1.0, std::round(traffic.reduce_scatter / gradient_bucket(context.rules, traffic.data_ranks())));
}

/// What an overlapped reduction (or gather, its mirror image) leaves exposed by the schedule alone, where no measured share says
/// more. `pass`: one micro-batch's backward (forward) through the stage. Seconds.
double exposed_by_schedule(const Recipe& recipe, double all, double calls, double pass, double micro_batches) {
  // Without interleaving the stages behind the first, which cut no buckets, end their last backward a pass or more before it.
  if (recipe.pp > 1 && recipe.vpp == 1) return std::max(0.0, all - pass);
  const double chunks = recipe.pp > 1 ? recipe.vpp : calls;
  const double group = recipe.pp > 1 ? std::min<double>(recipe.pp, micro_batches) : 1.0;
  return chunk_by_chunk(all / chunks, group * pass / chunks, static_cast<std::int32_t>(chunks));
}

/// Fully sharded states: what a stage exposes per step of gathers and reductions. `layer`, `root`: parameters of one layer and of
/// what lies beside the layers; `time_over(group, ranks, kind, bytes, calls)` prices collectives.
template <class TimeOver>
double sharded_dp_exposed(const ScreenContext& context, const Recipe& recipe, double layer, double root, const StageCost& stage,
                          double micro_batches, const TimeOver& time_over) {
  const GroupShapes shapes = group_shapes(recipe);
  const GroupNetwork& net = context.network.at(shapes.dp);
  const double layers = std::max(1.0, stage.layers);
  const std::int64_t ranks = shard_ranks(recipe);
  const auto traffic = [&](double parameters) { return dp_traffic(parameters, context.training, recipe, context.rules); };
  if (context.rules.zero3_waits) {
    // Tensor by tensor, each alone on the machine; what is recomputed is gathered once more.
    const double tensors = matrices_per_layer(context, recipe);
    const double again = recipe.recompute.kind == RecomputeKind::kFull ? 1.0 : 0.0;
    const double host = host_time_of_slices(context, ranks, 1.0).value();
    const auto each = [&](CollectiveKind kind, Bytes bytes) {
      return bytes.value() > 0.0 ? time_over(net, ranks, kind, bytes, 1.0) + host : 0.0;
    };
    const DpTraffic one = traffic(layer / tensors), rest = traffic(root);
    const double layers_time = (2.0 + again) * each(CollectiveKind::kAllGather, one.all_gather) +
                               each(CollectiveKind::kReduceScatter, one.reduce_scatter);
    const double root_time =
        2.0 * each(CollectiveKind::kAllGather, rest.all_gather) + each(CollectiveKind::kReduceScatter, rest.reduce_scatter);
    return (layers * tensors * layers_time + root_time) * micro_batches;
  }
  const auto lost = [&](LinkClass link) { return 1.0 - 1.0 / overlap_slowdown(context.rates, link); };
  ShardedTimes times;
  times.lost = lost(net.collective_link);
  const GroupNetwork* replicas = shard_replicas(recipe) > 1 ? &context.network.at(shapes.dp_replica) : nullptr;
  for (const auto& [unit, parameters] : {std::pair{&times.layer, layer}, std::pair{&times.root, root}}) {
    const DpTraffic of = traffic(parameters);
    unit->gather = time_over(net, ranks, CollectiveKind::kAllGather, of.all_gather, 1.0);
    unit->scatter = time_over(net, ranks, CollectiveKind::kReduceScatter, of.reduce_scatter, 1.0);
    if (replicas != nullptr)
      unit->replicas = time_over(*replicas, of.replicas, CollectiveKind::kAllReduce, of.replica_reduce, 1.0);
  }
  if (replicas != nullptr) {
    times.replicas_lost = lost(replicas->collective_link);
    times.beside = context.rules.replica_reduce_stream && replicas->collective_link != net.collective_link;
  }
  return sharded_exposed(times, layers, recipe.vpp, stage.forward.total().value(), stage.backward.total().value(), micro_batches,
                         weights_stay_gathered(context.rules, recipe));
}

/// Exposed gradient reduction and parameter gather per step.
double dp_exposed(const ScreenContext& context, const Recipe& recipe, double parameters, const StageCost& stage,
                  double micro_batches, double& sigma) {
  const DpTraffic traffic = dp_traffic(parameters, context.training, recipe, context.rules);
  if (traffic.data_ranks() <= 1) return 0.0;
  const GroupShapes shapes = group_shapes(recipe);
  const GroupNetwork& net = context.network.at(shapes.dp);
  const bool sharded = traffic.gathers_per_micro_batch > 0;
  // Every bucket is a collective of its own and pays the steps of its ring.
  const double buckets = gradient_buckets(context, recipe, traffic, parameters, stage.layers);
  const double gathers = recipe.overlap_param_gather ? buckets : recipe.vpp;
  const auto time_over = [&](const GroupNetwork& group, std::int64_t ranks, CollectiveKind kind, Bytes bytes, double calls) {
    if (bytes.value() <= 0.0 || ranks <= 1) return 0.0;
    const Rated rated = collective_time(context.rates, kind, group.collective_link, bus_rate(context.rates, group, kind),
                                        group.ring.latency, ranks, bytes / calls, form_of_stride(group.shape.stride));
    sigma = std::max<double>(sigma, rated.relative_sigma);
    const Seconds latency = kind == CollectiveKind::kAllReduce ? group.all_reduce_latency : group.round_latency;
    return (rated.time + latency).value() * calls;
  };
  const auto time = [&](CollectiveKind kind, Bytes bytes, double calls) {
    return time_over(net, traffic.ranks, kind, bytes, calls);
  };
  if (sharded) {
    const double root =
        parameters - stage.layers * parameters_on_stage(context, recipe, count_parameters(context.model), 1.0, false, false);
    return sharded_dp_exposed(context, recipe, (parameters - root) / std::max(1.0, stage.layers), root, stage, micro_batches,
                              time_over);
  }
  const double scatter =
      time(traffic.all_reduce ? CollectiveKind::kAllReduce : CollectiveKind::kReduceScatter, traffic.reduce_scatter, buckets);
  const double replica_reduce = traffic.replicas > 1 ? time_over(context.network.at(shapes.dp_replica), traffic.replicas,
                                                                 CollectiveKind::kAllReduce, traffic.replica_reduce, buckets)
                                                     : 0.0;
  const double reduce = scatter + replica_reduce;
  const double gather = time(CollectiveKind::kAllGather, traffic.all_gather, gathers);
  const double forward = stage.forward.total().value();
  const double backward = stage.backward.total().value();
  // ZeRO-1 over slices of every tensor: after the update each rank's piece of each is copied back by itself.
  const double sliced = traffic.all_reduce || context.rules.shard_host_operations <= 0.0
                            ? 0.0
                            : host_time_of_slices(context, traffic.ranks, stage.layers * sliced_tensors(context, recipe)).value();
  if (context.rules.dp_exposed_share <= 0.0) {
    const auto exposed = [&](double all, double calls, double pass, bool overlapped) {
      return overlapped ? exposed_by_schedule(recipe, all, calls, pass, micro_batches) : all;
    };
    return exposed(reduce, buckets, backward, recipe.overlap_grad_reduce) +
           exposed(gather, gathers, forward, recipe.overlap_param_gather) + sliced;
  }
  // Overlapped: the reduction may hide behind the last micro-batch's backward, the gather behind the first one's forward; a
  // measured share stays exposed (late buckets, contention), the rest only as far as there is compute to hide behind.
  const double share = context.rules.dp_exposed_share;
  const double reduce_exposed = recipe.overlap_grad_reduce ? std::max(share * reduce, reduce - backward) : reduce;
  const double gather_exposed = recipe.overlap_param_gather ? std::max(share * gather, gather - forward) : gather;
  return reduce_exposed + gather_exposed + sliced;
}

/// Pipeline messages on the critical path per step.
double pp_exposed(const ScreenContext& context, const Recipe& recipe, double micro_batches, double& sigma) {
  if (recipe.pp <= 1) return 0.0;
  const GroupNetwork& net = context.network.at(group_shapes(recipe).pp);
  const Bytes bytes = pp_message(context.model, context.training, recipe, context.rules);
  const Rated rated = message_time(context.rates, net.ring, bytes);
  const double message = rated.time.value();
  sigma = rated.relative_sigma;
  double gather = 0.0;  // of parts, before the first layer can begin
  if (const Bytes whole = pp_gather(context.model, context.training, recipe, context.rules); whole.value() > 0.0) {
    const GroupNetwork& tp = context.network.at(group_shapes(recipe).tp);
    gather = collective_time(context.rates, CollectiveKind::kAllGather, tp.collective_link,
                             bus_rate(context.rates, tp, CollectiveKind::kAllGather), tp.ring.latency, recipe.tp, whole)
                 .time.value();
  }
  const double passes = 2.0 * (recipe.pp - 1);  // of the whole pipeline, once forward and once backward
  const double messages = 2.0 * recipe.vpp * micro_batches;
  const bool overlapped = (recipe.vpp > 1 || split_backward(recipe)) && recipe.overlap_p2p;
  const double shown = overlapped ? context.rules.pp_exposed_share : 1.0;
  return passes * (message + gather) + messages * (shown * message + gather);
}

/// The sum of tied embeddings' gradients over the two ends of the pipeline: a pair of its group, as far apart as neighbours at
/// least.
double tied_exposed(const ScreenContext& context, const Recipe& recipe, double& sigma) {
  const Bytes bytes = tied_gradients(context, recipe);
  if (bytes.value() <= 0.0) return 0.0;
  const GroupNetwork& net = context.network.at(group_shapes(recipe).pp);
  const Rated rated = collective_time(context.rates, CollectiveKind::kAllReduce, net.collective_link, net.collective_rate,
                                      net.ring.latency, 2, bytes, form_of_stride(net.shape.stride));
  sigma = std::max<double>(sigma, rated.relative_sigma);
  return rated.time.value();
}

/// `repeated`: over all stages, in layers.
void add_rates(const ScreenContext& context, const Recipe& recipe, const Repeated& repeated, Candidate& candidate) {
  const double step = candidate.time.step().value();
  const double gpus = static_cast<double>(recipe.world());
  candidate.tokens_per_second_per_gpu = real_tokens_per_step(context.training) / step / gpus;
  const TokenFlops flops = forward_flops_per_token(context.model, attended_context(context.model, context.training));
  const Flops attention = flops.attention, rest = flops.projections + flops.mlp;
  const Flops model_flops = 3.0 * (static_cast<double>(context.model.layers) * (attention + rest) + flops.head);
  const Flops hardware_flops = model_flops + attention * repeated.attention + rest * repeated.rest + flops.mlp * repeated.mlp;
  const double peak = dense_peak(context.cluster.gpu, recipe.precision).value();
  candidate.mfu = candidate.tokens_per_second_per_gpu * model_flops.value() / peak;
  candidate.hfu = candidate.tokens_per_second_per_gpu * hardware_flops.value() / peak;
}

}  // namespace

Candidate compose(const ScreenContext& context, const Recipe& recipe, const ResolvedLayout& layout, const LayerCost& layer) {
  Candidate candidate;
  candidate.recipe = recipe;
  const ParameterCount count = count_parameters(context.model);
  const double micro_batches =
      static_cast<double>(context.training.global_batch) / (static_cast<double>(recipe.dp) * recipe.micro_batch);

  const WindowedLayers windowed = windowed_by_stage(context, layout);
  // The slowest stage sets the pace; the others' work shows up as bubble when the pipeline fills and drains.
  StageCost slowest;
  std::vector<StageCost> stages;  // only where their turns are followed
  double sum = 0.0, slowest_total = -1.0, slowest_parameters = 0.0;
  Repeated repeated;
  for (std::int32_t p = 0; p < recipe.pp; ++p) {
    const bool first = p == 0, last = p == recipe.pp - 1;
    const double layers = layout.layers_of_stage[static_cast<std::size_t>(p)];
    StageCost stage =
        stage_cost(recipe, context.rules, layer, layers, windowed.of_stage[static_cast<std::size_t>(p)], first, last);
    if (context.rules.accumulation_traffic_per_parameter + context.rules.zero3_copy_bytes > 0.0) {
      stage.backward.compute +=
          accumulation_time(context, recipe, parameters_on_stage(context, recipe, count, layers, first, last));
    }
    const double total = (stage.forward.total() + stage.backward.total()).value();
    repeated += stage.repeated;
    sum += total;
    if (split_backward(recipe)) stages.push_back(stage);
    if (total > slowest_total) {
      slowest_total = total;
      slowest = stage;
      slowest_parameters = parameters_on_stage(context, recipe, count, layers, first, last);
    }
  }
  Cost busy = slowest.forward;
  busy += slowest.backward;
  busy = busy * micro_batches;
  TimeBreakdown& time = candidate.time;
  time.compute = busy.compute;
  time.exposed_cp = busy.cp;
  time.exposed_tp = busy.tp;
  time.launch = busy.launch;
  time.bubble = Seconds(split_backward(recipe) ? zero_bubble(recipe, stages, micro_batches, busy.total().value())
                        : windowed.uneven && recipe.pp > 1
                            ? uneven_bubble(context, recipe, layout, layer, windowed, micro_batches, busy.total().value())
                            : std::max(0.0, sum - slowest_total) / recipe.vpp);
  // What communication exposes is as uncertain as its link; the layers' share is in `busy` already.
  double pp_sigma = 0, dp_sigma = 0;
  time.exposed_pp = Seconds(pp_exposed(context, recipe, micro_batches, pp_sigma));
  time.exposed_dp = Seconds(dp_exposed(context, recipe, slowest_parameters, slowest, micro_batches, dp_sigma) +
                            tied_exposed(context, recipe, dp_sigma));
  const double links = std::hypot(pp_sigma * time.exposed_pp.value(), dp_sigma * time.exposed_dp.value());
  time.optimizer = optimizer_time(context, recipe, slowest_parameters);

  const double step = time.step().value();
  candidate.relative_sigma =
      static_cast<float>(std::hypot(std::sqrt(busy.variance + links * links) / step, composition_sigma(time)));
  candidate.step_low = Seconds(step / (1.0 + kNinetyPercent * candidate.relative_sigma));
  candidate.step_high = Seconds(step * (1.0 + kNinetyPercent * candidate.relative_sigma));
  candidate.in_range = layer.in_range();
  candidate.cp = layer.cp;
  add_rates(context, recipe, repeated, candidate);

  const MemoryCase at{context.model, context.training, recipe, context.rules, context.cluster.gpu, layout};
  candidate.memory = worst_stage_memory(at);
  candidate.verdict =
      judge(candidate.memory, context.cluster.gpu, context.requirements.memory_margin_share, context.rules.reserved_spread);
  return candidate;
}

Candidate screen(const ScreenContext& context, const Recipe& recipe, const ResolvedLayout& layout) {
  return compose(context, recipe, layout, layer_cost(context, recipe));
}

}  // namespace cpfit
