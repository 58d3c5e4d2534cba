// What every kernel of one layer takes on one rank, in the simulator's clock: the screen's operators, taken apart at the places
// where communication may come between them. The sums equal the screen's (rounding up to a picosecond apart).
#pragma once

#include <vector>

#include "sim/engine/clock.h"
#include "sim/screen/operators.h"
#include "sim/screen/screen.h"

namespace cpfit::schedule {

/// One half of a layer (attention or MLP): norm, column-parallel product (QKV, MLP in), what stands between the products (RoPE,
/// activation), row-parallel product (projection, MLP out).
struct HalfTimes {
  engine::Picoseconds norm = 0, column = 0, middle = 0, row = 0;
  engine::Picoseconds norm_back = 0, middle_back = 0;
  engine::Picoseconds column_input_gradient = 0, column_weight_gradient = 0;
  engine::Picoseconds row_input_gradient = 0, row_weight_gradient = 0;
};

/// Kernels of core attention on one rank of the ring, by step in the order of the pass; 0 where a step launches none.
struct RingRankTimes {
  std::vector<engine::Picoseconds> forward, backward, forward_merge, backward_merge;
};

struct OperatorTimes {
  HalfTimes attention, mlp;
  std::vector<RingRankTimes> full_ring;      // (ring ranks): layers that attend to the whole prefix; empty where there are none
  std::vector<RingRankTimes> windowed_ring;  // (ring ranks): layers with a sliding window
  engine::Picoseconds embedding = 0;         // forward and backward together, half in each
  engine::Picoseconds head_forward = 0, head_backward = 0;  // product and loss
  engine::Picoseconds head_weight_gradient = 0;             // part of head_backward
};

[[nodiscard]] OperatorTimes operator_times(const ScreenContext& context, const Recipe& recipe);

/// Host calls of the parts of a layer, as the screen counts them (operators::host_calls): for kernels of forward kForwardCalls
/// each, of backward one.
struct LaunchCounts {
  static constexpr std::int32_t kEach = operators::kForwardCalls;
  static constexpr std::int32_t kNormAttention = 2 * kEach, kNormMlp = 3 * kEach, kColumn = kEach, kRope = 2 * kEach,
                                kActivation = kEach, kAttention = kEach, kRowAttention = kEach, kRowMlp = 2 * kEach,
                                kSequenceCollective = kEach;
  static constexpr std::int32_t kMlp = kNormMlp + kColumn + kActivation + kRowMlp;
  static constexpr std::int32_t kRest = kNormAttention + kColumn + kRope + kRowAttention + kMlp;
  static constexpr std::int32_t kGradient = 1, kNormBack = 5, kMiddleBack = 2, kAttentionBack = 4, kRingStepBack = 2,
                                kSequenceCollectiveBack = 1;
};

}  // namespace cpfit::schedule
