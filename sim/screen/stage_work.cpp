#include "sim/screen/stage_work.h"

#include <algorithm>

#include "model/cluster/host_copies.h"

namespace cpfit {

Repeated repeated_by_full(const RuleSet& rules) {
  // The first part of a sequence attends to nothing behind it: the square of its share of the causal pairs.
  const double again = 1.0 - rules.checkpoint_kept_attention;
  return {again * again, 1.0, 0.0};
}
Repeated repeated_by_selective(const RuleSet& rules) {
  switch (rules.selective_recompute) {
    case SelectiveRecompute::kCoreAttention:
      return {1.0, 0.0, 0.0};
    case SelectiveRecompute::kEverySecondMatmul:
      return {0.0, 0.5, 0.0};  // half of the products with everything element-wise between them; attention's output is kept
    case SelectiveRecompute::kNormsAndActivation:
      return {0.0, 0.0, 0.0};  // passes over memory, inside the element-wise traffic's own uncertainty
  }
  return {};
}

Repeated repeated_on(const Recipe& recipe, const RuleSet& rules, double layers) {
  double whole_layers = 0.0;
  if (recipe.recompute.kind == RecomputeKind::kSelective) return repeated_by_selective(rules) * layers;
  if (recipe.recompute.kind == RecomputeKind::kMlp) return kMlpAgain * layers;
  if (recipe.recompute.kind == RecomputeKind::kFull) whole_layers = layers;
  if (recipe.recompute.kind == RecomputeKind::kBlock) whole_layers = std::min<double>(layers, recipe.recompute.block_layers);
  return repeated_by_full(rules) * whole_layers;
}

double parameters_on_stage(const ScreenContext& context, const Recipe& recipe, const ParameterCount& count, double layers,
                           bool first, bool last) {
  const double tp = recipe.tp;
  const double vocab_rows = static_cast<double>(padded_vocab(context.model.vocab, context.training.vocab_divisor, recipe.tp)) *
                            static_cast<double>(context.model.hidden) / tp;
  double parameters = layers * (static_cast<double>(count.layer.sharded()) / tp + static_cast<double>(count.layer.replicated()));
  if (first) parameters += vocab_rows + static_cast<double>(count.positions);
  if (last && !(context.model.tied_embeddings && recipe.pp == 1)) parameters += vocab_rows;
  if (last) parameters += static_cast<double>(count.final_norm);
  return parameters;
}

Seconds accumulation_time(const ScreenContext& context, const Recipe& recipe, double parameters) {
  const bool sharded = recipe.state_sharding == StateSharding::kZero3 && recipe.dp * recipe.cp > 1;
  const double per_parameter =
      context.rules.accumulation_traffic_per_parameter + (sharded ? context.rules.zero3_copy_bytes : 0.0);
  const double bytes = per_parameter * parameters;
  return bytes > 0.0 ? memory_time(context.rates, Bytes(bytes), 1).time : Seconds();
}

namespace {

/// Gradients go out before the host's Adam takes them and weights come back after it, behind each other on one stream (BMTrain
/// AdamOffloadOptimizer.step); the arithmetic between runs tensor by tensor beside the copies. One clipping norm on the GPU.
Seconds host_optimizer_time(const ScreenContext& context, const Recipe& recipe, double parameters) {
  const HostCopies copies = host_copies(context.cluster, recipe.world());
  const double gradient = context.training.grad_dtype == GradDtype::kFp32 ? 4.0 : 2.0, weight = 2.0;
  Seconds time = memory_time(context.rates, Bytes(gradient * parameters), 1).time;
  if (copies.rate.value() <= 0) return time;
  for (const double bytes : {gradient, weight})
    time += message_time(context.rates, copies.slowest, copies.rate, copies.latency, Bytes(bytes * parameters)).time;
  return time;
}

}  // namespace

Seconds optimizer_time(const ScreenContext& context, const Recipe& recipe, double parameters) {
  const double shards = recipe.state_sharding == StateSharding::kNone ? 1.0 : static_cast<double>(shard_ranks(recipe));
  if (context.rules.optimizer_on_host) return host_optimizer_time(context, recipe, parameters / shards);
  const double whole = context.rules.accumulation_traffic_per_parameter > 0.0 ? 16.0 : 0.0;
  return memory_time(context.rates, Bytes((34.0 / shards + whole) * parameters), 4).time;
}

Bytes tied_gradients(const ScreenContext& context, const Recipe& recipe) {
  if (!context.model.tied_embeddings || recipe.pp <= 1) return {};
  const double vocab = static_cast<double>(padded_vocab(context.model.vocab, context.training.vocab_divisor, recipe.tp));
  const double bytes = context.training.grad_dtype == GradDtype::kFp32 ? 4.0 : 2.0;
  return Bytes(bytes * vocab * static_cast<double>(context.model.hidden) / recipe.tp);
}

}  // namespace cpfit
