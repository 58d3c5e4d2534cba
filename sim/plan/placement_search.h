// The placement optimiser: which rank order and which orders of the GPUs inside the domains make the groups of a recipe
// communicate soonest.
//
// Tried, in this order (the first of equals stays, and the recipe's own placement is the first):
//   rank orders   every order of the axes that have more than one rank, the recipe's own first
//   GPU orders    as numbered; the ring of the domain's GPUs ordered by bottleneck (ring_order.h)
//   turns         none; every second domain backwards, so that rings stay on their rail where they leave a domain
//   swaps         of two GPUs, from the best found, until none helps (domains up to kSwapGpus, at most kSwapRounds rounds)
// Up to kExactRing GPUs with one CP ring per domain the ring is the best there is; otherwise the best of what was tried.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/plan/placement.h"

namespace cpfit {

inline constexpr std::int64_t kSwapGpus = 16;
inline constexpr std::int32_t kSwapRounds = 8;
inline constexpr std::int64_t kPlacedRanks = 4096;  // a larger job repeats what its first ranks do

struct PlacementAdvice {
  PlacementPrice before, after;  // the same when nothing is better
  bool better = false;
  std::int64_t tried = 0;                           // placements priced
  std::vector<LinkLoad> links_before, links_after;  // every loaded link, busiest first
  std::string sentence;                             // what to do, what it gains
};

/// Name of the placement that changes nothing.
inline constexpr const char* kUsualPlacement = "the recipe's rank order, GPUs as numbered";
/// Ranks as the recipe orders them, GPUs as they are numbered.
[[nodiscard]] Placement default_placement(const Recipe& recipe);

/// Orders of one domain's GPUs that let rings which pass several domains stay on their rail: every second domain backwards, in
/// blocks of `stride` GPUs (what varies faster than cp); with an odd number of domains the last ones take another way round.
/// `base` is the order that is turned (GPUs of a domain). Empty when rings do not pass a border inside the domain's order.
[[nodiscard]] std::vector<std::vector<std::int32_t>> turned_orders(const std::vector<std::int32_t>& base, std::int64_t stride,
                                                                   std::int64_t cp);

/// The best placement found. The recipe must be legal, fit the cluster and have at most kPlacedRanks ranks. Deterministic.
[[nodiscard]] PlacementAdvice optimise_placement(const ScreenContext& context, const Recipe& recipe);

}  // namespace cpfit
