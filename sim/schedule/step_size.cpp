#include "sim/schedule/step_size.h"

#include <algorithm>

namespace cpfit::schedule {

namespace {

/// Activities of one layer on one rank, forward and backward: kernels that no communication parts are written as one.
struct LayerActivities {
  std::int64_t kernels, exchange, ring_step;
};
constexpr LayerActivities kWhole{4, 4, 5};    // without tensor parallelism: halves before and behind attention
constexpr LayerActivities kParted{30, 4, 5};  // collectives part every product
constexpr LayerActivities kAgain{2, 2, 2};    // the forward repeated by full recompute
constexpr LayerActivities kPartedAgain{12, 2, 2};
constexpr std::int64_t kMlpKernels = 1, kPartedMlpKernels = 7;  // its MLP half alone
constexpr std::int64_t kTurn = 4;                               // of a chunk: embedding, head, pipeline messages
constexpr std::int64_t kStateOfLayer = 3;                       // gathers and reductions of fully sharded states

std::int64_t of_layer(const LayerActivities& layer, bool ring, std::int64_t steps) {
  return layer.kernels + (ring ? layer.ring_step * steps : layer.exchange);
}

}  // namespace

std::int64_t estimated_activities(const ScreenContext& context, const Recipe& recipe, const StepOptions& options) {
  const SimulatedRanks ranks(recipe, options.every_rank);
  const std::int64_t per_stage = ranks.count() / recipe.pp;
  const std::int64_t micro_batches =
      std::max<std::int64_t>(1, context.training.global_batch / (std::int64_t{recipe.dp} * recipe.micro_batch));
  const bool alternating = context.model.sliding_window > 0 && context.model.window_period > 0;
  const bool folds = options.fold_layers && recipe.pp == 1 && !alternating && recipe.recompute.kind != RecomputeKind::kBlock;
  const bool ring = recipe.cp > 1 && recipe.cp_comm != CpComm::kA2a && recipe.cp_comm != CpComm::kAllGather;
  const std::int64_t steps =
      recipe.cp_comm == CpComm::kA2aP2p ? std::max(1, recipe.cp / std::max(1, recipe.a2a_degree)) : recipe.cp;
  const bool repeats = recipe.recompute.kind == RecomputeKind::kFull || recipe.recompute.kind == RecomputeKind::kBlock;
  // Layers of a ring seldom repeat to the picosecond; others do after a few.
  const std::int64_t layers =
      folds && !ring ? std::min<std::int64_t>(context.model.layers, options.fold_copies * 3 / 2) : context.model.layers;
  const bool parted = recipe.tp > 1;
  std::int64_t layer = of_layer(parted ? kParted : kWhole, ring, steps);
  if (repeats) layer += of_layer(parted ? kPartedAgain : kAgain, ring, steps);
  if (recipe.recompute.kind == RecomputeKind::kMlp) layer += parted ? kPartedMlpKernels : kMlpKernels;
  if (recipe.state_sharding == StateSharding::kZero3) layer += kStateOfLayer;
  if (split_backward(recipe)) ++layer;  // gradients of weights by themselves
  return per_stage * micro_batches * (layers * layer + std::int64_t{recipe.pp} * recipe.vpp * kTurn);
}

}  // namespace cpfit::schedule
