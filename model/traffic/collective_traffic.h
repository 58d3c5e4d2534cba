// Bytes of tensor, pipeline and data parallelism, per rank (cp_model.md D.1-D.3).
#pragma once

#include <cstdint>

#include "model/framework/rule_set.h"
#include "model/quantity/units.h"
#include "model/recipe/recipe.h"
#include "model/recipe/training.h"
#include "model/transformer/architecture.h"

namespace cpfit {

/// Tensor parallelism, one layer, one micro-batch. Buffers are full (gathered) sizes.
struct TpTraffic {
  Bytes activation;  // T*H*2: one gathered hidden tensor
  Bytes gather;      // what an all-gather moves: FP8 linears gather their inputs in one byte
  std::int32_t forward_gathers = 0, forward_scatters = 0;          // with sequence parallelism: 2 and 2
  std::int32_t backward_gathers = 0, backward_scatters = 0;        // 4 and 2: two of the gathers re-gather saved inputs for wgrad
  std::int32_t forward_all_reduces = 0, backward_all_reduces = 0;  // without: 2 and 2
};
[[nodiscard]] TpTraffic tp_traffic(const Architecture& model, const Training& training, const Recipe& recipe);

/// One pipeline message: T*H*2, /tp with sequence parallelism.
[[nodiscard]] Bytes pp_message(const Architecture& model, const Training& training, const Recipe& recipe, const RuleSet& rules);
/// What a tensor-parallel group gathers behind a message that came in parts; 0 where none does.
[[nodiscard]] Bytes pp_gather(const Architecture& model, const Training& training, const Recipe& recipe, const RuleSet& rules);

/// Data parallelism per step over D = dp*cp ranks; `parameters` are those of one rank. Of states sharded over fewer ranks than D
/// (Recipe::state_shards) gradients are scattered and parameters gathered inside a group, and the scattered gradients then summed
/// over the groups.
struct DpTraffic {
  std::int64_t ranks = 1;                    // of a group: D, or those that share one copy of the states
  std::int64_t replicas = 1;                 // groups
  Bytes replica_reduce;                      // buffer of the all-reduce over them: the rank's part of reduce_scatter
  Bytes reduce_scatter;                      // full buffer; with no sharding this is an all-reduce of the same buffer
  Bytes all_gather;                          // full buffer of parameters, 0 without state sharding
  bool all_reduce = false;                   // no state sharding
  std::int32_t gathers_per_micro_batch = 0;  // zero3: parameters are gathered again for forward and backward
  [[nodiscard]] std::int64_t data_ranks() const { return ranks * replicas; }
};
[[nodiscard]] DpTraffic dp_traffic(double parameters, const Training& training, const Recipe& recipe, const RuleSet& rules);

}  // namespace cpfit
