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
/// layer less. kFirstLast: the middle divides evenly. kCostBalanced (nanotron): greedy by cumulative cost.
[[nodiscard]] Outcome<ResolvedLayout> resolve_layout(const Architecture& model, const Recipe& recipe);

}  // namespace cpfit
