#include "sim/schedule/step_size.h"

#include <algorithm>

namespace cpfit::schedule {

namespace {

/// Forward and backward of a layer on one rank, as layer_schedule.h lists them: norms, products, what stands between them, and
/// input and weight gradients.
constexpr std::int64_t kLayerKernels = 23;
constexpr std::int64_t kTensorCollectives = 8;  // gathers and scatters of a layer, forward and backward
/// Forward and backward of one ring step on one rank: attention, KV message and merge; attention, KV and dKV messages, addition.
constexpr std::int64_t kRingStep = 7;
constexpr std::int64_t kExchange = 6;      // attention in one piece between collectives, forward and backward
constexpr std::int64_t kTurn = 8;          // of a chunk: embedding, head, pipeline messages, forward and backward
constexpr std::int64_t kStateOfLayer = 3;  // gathers and reductions of fully sharded states

}  // namespace

std::int64_t estimated_activities(const ScreenContext& context, const Recipe& recipe, const StepOptions& options) {
  const SimulatedRanks ranks(recipe, options.every_rank);
  const std::int64_t per_stage = ranks.count() / recipe.pp;
  const std::int64_t micro_batches =
      std::max<std::int64_t>(1, context.training.global_batch / (std::int64_t{recipe.dp} * recipe.micro_batch));
  const bool alternating = context.model.sliding_window > 0 && context.model.window_period > 0;
  const bool folds = options.fold_layers && recipe.pp == 1 && !alternating && recipe.recompute.kind != RecomputeKind::kBlock;
  const std::int64_t layers = folds ? std::min<std::int64_t>(context.model.layers, options.fold_copies) : context.model.layers;
  const bool ring = recipe.cp > 1 && recipe.cp_comm != CpComm::kA2a && recipe.cp_comm != CpComm::kAllGather;
  const std::int64_t steps =
      recipe.cp_comm == CpComm::kA2aP2p ? std::max(1, recipe.cp / std::max(1, recipe.a2a_degree)) : recipe.cp;
  const bool repeats = recipe.recompute.kind == RecomputeKind::kFull || recipe.recompute.kind == RecomputeKind::kBlock;
  std::int64_t layer = kLayerKernels + (recipe.tp > 1 ? kTensorCollectives : 0) + (ring ? kRingStep * steps : 0) + kExchange;
  if (repeats) layer += layer * 2 / 5;  // the forward again
  if (recipe.state_sharding == StateSharding::kZero3) layer += kStateOfLayer;
  return per_stage * micro_batches * (layers * layer + std::int64_t{recipe.pp} * recipe.vpp * kTurn);
}

}  // namespace cpfit::schedule
