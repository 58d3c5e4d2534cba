// In which order a pipeline stage runs its micro-batches: GPipe, 1F1B, interleaved 1F1B (Megatron-LM schedules.py), ZB-H1 (Qi et
// al. 2024, arXiv 2401.10241; Primus scheduler/algorithms/zerobubble.py).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/recipe/recipe.h"

namespace cpfit {

/// Forward or backward of one micro-batch through one chunk of the stage.
struct StageTurn {
  bool forward = true;
  std::int32_t micro_batch = 0;
  std::int32_t chunk = 0;
  bool weights = false;  // the second part of a split backward: gradients of weights; the first has those of inputs alone
  friend bool operator==(const StageTurn&, const StageTurn&) = default;
};

/// Place of a stage's chunk in ResolvedLayout::layers_of_chunk: pipeline order.
[[nodiscard]] inline std::size_t chunk_index(const Recipe& recipe, std::int32_t stage, std::int32_t chunk) {
  return static_cast<std::size_t>(chunk) * static_cast<std::size_t>(recipe.pp) + static_cast<std::size_t>(stage);
}

/// All turns of `stage` in one step of `micro_batches`.
/// GPipe: all forwards, then all backwards. 1F1B: min(m, pp - 1 - stage) forwards first, then forward and backward in turn.
/// Interleaved: the same over (micro-batch, chunk) pairs, pp micro-batches of one chunk before the next chunk, chunks backward
/// in reverse; min(m*vpp, 2(pp - stage - 1) + (vpp - 1) pp) forwards first.
/// ZB-H1: 1F1B whose backward forms input gradients only (B); weight gradients (W) follow `stage` micro-batches later, so that
/// every stage holds pp micro-batches and what it still owes fills the time in which the pipeline drains. m >= pp.
[[nodiscard]] std::vector<StageTurn> stage_turns(const Recipe& recipe, std::int32_t stage, std::int32_t micro_batches);

}  // namespace cpfit
