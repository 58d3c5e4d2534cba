// Placements in words: their names, what the best one gains, and what the borders between domains cost.
#pragma once

#include <string>
#include <vector>

#include "sim/plan/placement_search.h"

namespace cpfit {

/// "rank order cp-tp-dp-pp, GPUs 0,2,1,3, every second node backwards"; parts as in `usual` are left out, all of them: "the
/// recipe's rank order, GPUs as numbered".
[[nodiscard]] std::string placement_name(const Cluster& cluster, const Placement& placement, const RankOrder& usual, bool turned);

/// The orders of the hosts' GPUs, as a launcher numbers them, that give the cluster this placement; none when the GPUs stay as
/// they are, or when a domain is larger than a host (there the launcher's rank file decides).
[[nodiscard]] DeviceOrders device_orders(const Cluster& cluster, const Placement& placement);

/// A placement whose slowest CP hop is this much faster is worth a warning to whoever uses the other.
inline constexpr double kMuchFasterHop = 1.2;
/// The recipe's own placement has a slow CP hop that the best one avoids.
[[nodiscard]] bool avoids_slow_hop(const PlacementAdvice& advice);

/// What the best placement changes and gains, or that none does.
[[nodiscard]] std::string advice_sentence(const ScreenContext& context, const Recipe& recipe, const PlacementAdvice& advice);

/// Rails at the borders of domains under `price`: whether CP rings cross from rail to rail there, why not when they do not, and
/// what crossing costs: latency per hop, bytes per optimizer step over the spine. Empty when no CP ring leaves its node.
[[nodiscard]] std::string rail_sentence(const ScreenContext& context, const Recipe& recipe, const PlacementPrice& price);

}  // namespace cpfit
