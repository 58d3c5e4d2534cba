// What fully sharded states (ZeRO-3, FSDP) cost beside a stage's kernels: gathers of weights and reductions of gradients, unit by
// unit, a unit being a layer. What a stage holds beside its layers (embedding, final norm, head) is a unit of its own, the root.
//
// Rules, read in torch/distributed/fsdp/_fully_shard (FSDP2):
//   forward    the root is gathered first, alone, then the first layer; from there each layer's gather passes under the layer
//              before it. The root is not resharded before backward (_fsdp_state.py _lazy_init);
//   backward   gathers one layer ahead, the first of them under the last layers of forward; beside them passes the reduction of
//              the layer before. Both draw on the same links, so that the shorter one takes twice its own time;
//   its end    waits for every reduction (_root_post_backward_final_callback): the first layer's and the root's hide nowhere;
//   pipeline   weights may stay gathered through the step (RuleSet::zero3_unsharded_through_step): gathered by the first
//              micro-batch, gradients reduced once, behind the last backward (torch/distributed/pipelining/stage.py
//              backward_maybe_with_nosync).
// A collective takes its share of the SMs from the kernels it passes beside (rates [[overlap]]), as on the timeline.
#pragma once

#include "model/framework/rule_set.h"
#include "model/recipe/recipe.h"

namespace cpfit {

/// A stage's weights stay gathered from the first forward of a step to its last backward.
[[nodiscard]] inline bool weights_stay_gathered(const RuleSet& rules, const Recipe& recipe) {
  return recipe.state_sharding == StateSharding::kZero3 && rules.zero3_unsharded_through_step && recipe.pp > 1;
}

/// Seconds of one unit's collectives, alone on their links; `replicas`: the all-reduce over copies of the states, if any.
struct UnitTimes {
  double gather = 0, scatter = 0, replicas = 0;
};

struct ShardedTimes {
  UnitTimes layer, root;
  double lost = 0;           // share of the SMs that a gather or a scatter takes
  double replicas_lost = 0;  // the same of the all-reduce over replicas
  bool beside = false;       // that passes beside the others: on a stream of its own and over other links
};

/// Seconds per step of a stage with `layers` layers (at least 1) in `chunks` model chunks that collectives expose: waits for them
/// and what kernels lose beside them. `forward` and `backward`: seconds of one micro-batch's kernels through the stage.
[[nodiscard]] double sharded_exposed(const ShardedTimes& times, double layers, double chunks, double forward, double backward,
                                     double micro_batches, bool stays_gathered);

}  // namespace cpfit
