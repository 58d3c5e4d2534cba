// Core attention of one layer with its context-parallel communication: kernels per ring step on the slowest rank, messages on
// the slowest hop, and what stays exposed by the recurrence of the implementation. Private to the screen.
#pragma once

#include <vector>

#include "model/traffic/cp_traffic.h"
#include "sim/screen/operators.h"

namespace cpfit::operators {

/// PyTorch's exchanges in a compiled model hide behind nothing: while a graph is traced its functional collectives wait for
/// themselves at once (torch/distributed/_functional_collectives.py _maybe_wrap_tensor), and Inductor does not move them apart
/// unless asked (reorder_for_compute_comm_overlap, off by default). Run eagerly they wait where the result is used.
[[nodiscard]] inline bool exchanges_wait_at_once(const RuleSet& rules) {
  return rules.kv_exchange == KvExchange::kAllGatherOnce && rules.fused_elementwise;
}

/// NCCL takes as few channels to every peer as the furthest one needs (ncclTopoComputeP2pChannels counts the least over all ranks
/// of a communicator), so that only rings inside one scale-up domain have all their links' channels, and the SMs under them.
[[nodiscard]] inline bool ring_has_own_channels(const ScreenContext& context, const Recipe& recipe) {
  if (recipe.cp == 1) return false;
  const GroupShapes shapes = group_shapes(recipe);
  const bool windows_inside = recipe.cp_comm != CpComm::kDoubleRing || context.network.at(shapes.cp_inner).domains == 1;
  return windows_inside && context.network.at(shapes.cp_ring).domains == 1;
}

/// Kernel times of one rank by ring step, isolated kernels times the training factor; backward in the order in which the ring
/// visits the steps (reversed rings mirror them). Merges are what the ring adds to attention itself: corrections of the partial
/// outputs, additions of the partial gradients, copies of half tensors.
struct StepTimes {
  std::vector<double> forward, backward;              // (steps) seconds
  std::vector<double> forward_merge, backward_merge;  // (steps) seconds, 0 where nothing is merged
  double forward_variance = 0, backward_variance = 0;
  bool in_range = true;
  [[nodiscard]] double forward_total() const;  // merges included
  [[nodiscard]] double backward_total() const;
};

/// Steps of one rank of the (outer) ring. `windowed`: the layer attends through the model's sliding window.
[[nodiscard]] StepTimes attention_steps_of(const ScreenContext& context, const Recipe& recipe, const RankShape& shape,
                                           bool windowed, std::int32_t ring_rank);

/// Steps of the slowest rank.
[[nodiscard]] StepTimes attention_steps(const ScreenContext& context, const Recipe& recipe, const RankShape& shape,
                                        bool windowed);

/// The rectangles of rank ring-1, one entry per kernel in step order (two for an all-gather).
struct StepRectangle {
  std::int64_t q_len = 0, kv_len = 0;
};
[[nodiscard]] std::vector<StepRectangle> attention_rectangles(const ScreenContext& context, const Recipe& recipe);

/// Adds core attention and its communication of one layer to forward and backward; fills `exposure`.
void add_attention(const ScreenContext& context, const Recipe& recipe, const StepTimes& steps, Cost& forward, Cost& backward,
                   CpExposure& exposure);

}  // namespace cpfit::operators
