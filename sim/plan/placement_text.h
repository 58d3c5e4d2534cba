// Placements in words: their names, what the best one gains, and what the borders between domains cost.
#pragma once

#include <string>

#include "sim/plan/placement_search.h"

namespace cpfit {

/// "rank order cp-tp-dp-pp, GPUs 0,2,1,3, every second domain backwards"; parts as in `usual` are left out, all of them: "the
/// recipe's rank order, GPUs as numbered".
[[nodiscard]] std::string placement_name(const Placement& placement, const RankOrder& usual, bool turned);

/// "CUDA_VISIBLE_DEVICES=0,2,1,3 on every node", one line per different order; empty when the GPUs stay as numbered, or when a
/// domain is larger than a host (there the launcher's rank file decides).
[[nodiscard]] std::vector<std::string> device_lines(const Cluster& cluster, const Placement& placement);

/// What the best placement changes and gains, or that none does.
[[nodiscard]] std::string advice_sentence(const ScreenContext& context, const Recipe& recipe, const PlacementAdvice& advice);

/// Rails at the borders of domains under `price`: whether CP rings cross from rail to rail there, why not when they do not, and
/// what crossing costs: latency per hop, bytes per optimizer step over the spine. Empty when no CP ring leaves its node.
[[nodiscard]] std::string rail_sentence(const ScreenContext& context, const Recipe& recipe, const PlacementPrice& price);

}  // namespace cpfit
