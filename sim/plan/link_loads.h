// Bytes and busy time of every directed link under a recipe, per optimizer step: all flows of all ranks routed on the topology
// graph. Collectives are counted as rings in rank order, all-to-alls pairwise.
#pragma once

#include <vector>

#include "model/record/run.h"
#include "sim/plan/workbench.h"

namespace cpfit {

/// Loads sorted by busy time, busiest first, at most `limit`. On clusters beyond kRoutedRanks GPUs only the flows that leave the
/// first kRoutedRanks ranks are routed: nodes are alike, so the busiest links of a part are those of the whole.
inline constexpr std::int64_t kRoutedRanks = 1024;
[[nodiscard]] std::vector<LinkLoad> link_loads(const ScreenContext& context, const Recipe& recipe, std::size_t limit);

}  // namespace cpfit
