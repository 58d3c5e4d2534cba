// What one transformer layer costs on one rank for one micro-batch: kernels, exposed communication, host launches; and the
// ends of the pipeline (embedding, head and loss). Everything that depends on (micro-batch, tp, cp, CP strategy, precision) but
// not on pp, vpp, dp or the state sharding, so that a search computes it once and composes many recipes from it.
#pragma once

#include "model/record/candidate.h"
#include "sim/screen/screen.h"

namespace cpfit {

/// Time of a piece of work by where it goes, with the variance of the estimate (s^2) for the interval.
struct Cost {
  Seconds compute;  // kernels of this rank
  Seconds cp;       // exposed context-parallel communication, slowdown of overlapped kernels included
  Seconds tp;       // exposed tensor-parallel communication
  Seconds launch;   // host time not covered by kernels, of a whole stage: what the host does for one part it may do under another
  Seconds host;     // host time of its calls; part of the total where it is `launch`
  double variance = 0.0;

  [[nodiscard]] Seconds total() const { return compute + cp + tp + launch; }
  Cost& operator+=(const Cost& other);
  friend Cost operator*(const Cost& cost, double count);  // count copies of the same work: errors are fully correlated
};

/// One layer of one kind.
struct LayerPasses {
  Cost forward;
  Cost backward;           // gradients of inputs and weights
  Cost attention_forward;  // core attention with its ring, part of forward
  Cost rest_forward;       // the rest of forward: recompute may repeat one without the other
  Cost mlp_forward;        // the MLP half of forward, part of the rest
};

/// Layers differ only in their attention, where the model alternates windowed and global ones. A kind that the model does not
/// have stays empty.
struct LayerCost {
  LayerPasses windowed, global;
  Cost embedding;     // forward + backward, first stage
  Cost head_forward;  // final norm, head, loss; last stage
  Cost head_backward;
  Seconds split_tp;  // exposed TP of one layer's backward more than `backward` has, where gradients of weights come later
  Cost weights, head_weights;  // of one layer and of the head: what backward takes for gradients of weights
  CpExposure cp;               // of the worst layer kind
  bool gemm_in_range = true, attention_in_range = true, memory_in_range = true;  // of the measured shapes of each surface
  [[nodiscard]] bool in_range() const { return gemm_in_range && attention_in_range && memory_in_range; }
};

/// Shapes of the process groups whose network a recipe needs; NetworkView::prepare() them before a search.
struct GroupShapes {
  GroupShape tp, cp_ring, cp_inner, pp;
  GroupShape dp;          // gradients: dp*cp, or of those the ranks that share one copy of the states
  GroupShape dp_replica;  // those that hold the same part of them; size 1 where states are sharded over all
};
[[nodiscard]] GroupShapes group_shapes(const Recipe& recipe);

/// Of the layers [first, first + count), those that attend through a window: the model's, or all under a sliding-window mask.
[[nodiscard]] std::int64_t windowed_layers(const ScreenContext& context, std::int64_t first, std::int64_t count);

[[nodiscard]] LayerCost layer_cost(const ScreenContext& context, const Recipe& recipe);

/// Only the ends of the pipeline: embedding, head_forward, head_backward, head_weights.
[[nodiscard]] LayerCost end_costs(const ScreenContext& context, const Recipe& recipe);

/// Composes a candidate from the layer's cost: pipeline, data parallelism, optimizer, memory, verdict.
[[nodiscard]] Candidate compose(const ScreenContext& context, const Recipe& recipe, const ResolvedLayout& layout,
                                const LayerCost& layer);

}  // namespace cpfit
