// How many micro-batches' activations a pipeline stage holds when it holds most, counted in layers, because the chunks of an
// interleaved stage may hold different numbers of them. cp_model.md B.6; Megatron-LM schedules.py.
#pragma once

#include <cstdint>

#include "model/recipe/recipe.h"
#include "model/recipe/stage_layout.h"

namespace cpfit {

struct InFlight {
  double layers = 0;         // layer activations alive, over all micro-batches and chunks of the stage
  double first_chunk = 0;    // micro-batches alive in the stage's first chunk (embedding outputs on stage 0)
  double pending = 0;        // ZB-H1: micro-batches whose weight gradients are not formed yet, beside those alive
  double micro_batches = 0;  // GPipe: micro-batches whose head and loss tensors are alive; else 1
};

/// `micro_batches` m per step and data-parallel rank. 1F1B: min(m, pp - p). ZB-H1: the same, and p pending ones. GPipe: m.
/// Interleaved: the first min(m*vpp, 2(pp-p-1) + (vpp-1)*pp + 1) chunk forwards of the stage, in Megatron's order (pp
/// micro-batches of a chunk, then pp of the next).
[[nodiscard]] InFlight in_flight(const Recipe& recipe, const ResolvedLayout& layout, std::int32_t stage,
                                 std::int64_t micro_batches);

}  // namespace cpfit
