// Which layers sit on which pipeline stage and chunk. The layout is part of the recipe; its rule is that it sums to the
// layers and that the framework's rule set allows its kind: 126 layers on pp 16 is legal (embedding and loss counted as
// layers, or explicit first/last).
#pragma once

#include <cstdint>
#include <vector>

#include "model/quantity/problem.h"
#include "model/recipe/recipe.h"
#include "model/transformer/architecture.h"

namespace cpfit {

inline constexpr int kMaxStages = 256;

/// Layers per stage (sum over the stage's chunks) and per chunk in pipeline order: chunk v of stage p has index v*pp + p.
struct ResolvedLayout {
  std::vector<std::int32_t> layers_of_stage;  // (pp)
  std::vector<std::int32_t> layers_of_chunk;  // (pp*vpp)
};

/// Resolves the layout; problems say which rule failed and the nearest legal values.
/// kEven: L divisible by pp*vpp. kEmbeddingAndLossAsLayers: (L+2) divisible by pp*vpp, first chunk and last chunk hold one
/// layer less (405B: 128 chunks of one, the first only the embedding, the last only the head). kFirstLast: the middle divides
/// evenly, and each stage over its vpp chunks; an end that is 0 counts as a middle stage. kExplicit: sums to L; only the first
/// and the last chunk may be empty. kCostBalanced (nanotron, models/base.py): layers cost 4*H*a*d + 3*H*F, the head V*H, the
/// embedding nothing; in order, the block whose cumulative cost first exceeds total*(k+1)/pp is the last of stage k.
[[nodiscard]] Outcome<ResolvedLayout> resolve_layout(const Architecture& model, const Recipe& recipe);

/// Whether it resolves at all. Cheap, does not allocate: the legality table calls it for every recipe.
[[nodiscard]] bool layout_resolves(const Architecture& model, const Recipe& recipe);

/// Layers of the fullest stage, or 0 when the layout does not resolve. Does not allocate.
[[nodiscard]] std::int64_t layers_of_fullest_stage(const Architecture& model, const Recipe& recipe);

/// What is wrong with the layout and what to write instead; empty when it resolves.
[[nodiscard]] Problems layout_problems(const Architecture& model, const Recipe& recipe);

}  // namespace cpfit
