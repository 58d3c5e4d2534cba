// Real tokens and attended context of a training step: padding counts neither as work done nor as tokens trained.
#pragma once

#include "model/recipe/training.h"
#include "model/transformer/architecture.h"

namespace cpfit {

/// Share of a packed sequence's tokens that belong to documents; 1 for masks without documents.
[[nodiscard]] double occupancy(const Training& training);

/// global_batch * s * occupancy.
[[nodiscard]] double real_tokens_per_step(const Training& training);

/// Mean number of keys a real query attends under the training's mask, layers averaged (flops.h; documents: document_mix.h).
[[nodiscard]] double attended_context(const Architecture& model, const Training& training);

}  // namespace cpfit
