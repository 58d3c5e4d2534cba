// Where the figures of a recipe come from: the evidence behind every surface they rest on.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/screen/layer_cost.h"

namespace cpfit {

/// "gemm" -> "fitted", "attention", "memory_bound", "cp_links", "tp_links" -> "measured", "fitted" or "assumed"; from one
/// evaluation of each. The network of the context is prepared for the recipe.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> sources_of(const ScreenContext& context, const Recipe& recipe);

/// What a reader of the figures should know, a sentence each: kernels whose rates nobody measured on such a GPU, a ring that the
/// framework runs as a gather, sequences that are mostly padding.
[[nodiscard]] std::vector<std::string> remarks_on(const ScreenContext& context, const Recipe& recipe);

}  // namespace cpfit
