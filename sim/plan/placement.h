// Where ranks lie on the GPUs: a rank order, and inside each domain (host, or scale-up domain where that is larger) an order of
// its GPUs. A placement is priced by what its groups' communication takes per layer, and by the bytes and busy time of every
// link.
//
//   rank order       which axis varies fastest (rank_grid.h)
//   GPU orders       rank r has place r % domain in domain r / domain; domain n takes order n % orders.size(): [place] -> GPU
//   turn             orders that alternate, so that a ring leaves a domain and enters the next on the same rail
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/cluster/member_network.h"
#include "model/record/run.h"
#include "sim/screen/screen.h"

namespace cpfit {

struct Placement {
  RankOrder rank_order;
  std::vector<std::vector<std::int32_t>> gpu_orders;  // (1 or more, GPUs of a domain), permutations; empty: as they are numbered
  std::string name;                                   // "as numbered", "every second node reversed"
  friend bool operator==(const Placement&, const Placement&) = default;
};

/// GPU of a rank, of `domain` GPUs each.
[[nodiscard]] std::int64_t gpu_of(const Placement& placement, std::int64_t domain, std::int64_t rank);
/// GPUs of all groups of `axis` in ring order, one vector per group (rank_grid.h process_groups, placed).
[[nodiscard]] std::vector<std::vector<std::int64_t>> placed_groups(const Cluster& cluster, const Recipe& recipe,
                                                                   const Placement& placement, std::span<const Axis> axes);

/// One hop of a CP ring under a placement.
struct PlacedHop {
  std::int64_t from_rank = 0, to_rank = 0;  // in the placement's rank order
  std::int64_t from_gpu = 0, to_gpu = 0;
  HopNetwork network;  // its share while all CP rings run
  FlowRoute route;     // alone
  Seconds message;     // one KV message forward, of the recipe
};

/// CP hops of all rings, by what they cross.
struct HopCounts {
  std::int64_t rings = 0, hops = 0;
  std::int64_t leaving = 0;       // over a NIC
  std::int64_t cross_rail = 0;    // from one rail to another, which only a spine joins
  std::int64_t cross_socket = 0;  // between two sockets
  std::int64_t slowest = 0;       // as slow as the slowest
};

/// What a placement costs. Times are per layer and micro-batch, forward and backward, nothing hidden: an order of placements, no
/// prediction of a step.
struct PlacementPrice {
  Placement placement;
  std::vector<PlacedHop> ring;  // of rank 0; empty when no ring or gather runs (cp=1, a2a)
  PlacedHop slowest;            // of all rings: the longest message, of equals the first; meaningless without a ring
  HopCounts counts;
  Bytes kv_message;  // bytes of one forward message of the ring
  Seconds cp;        // ring: hops times the message over the slowest hop; or gathers, or head exchanges
  Seconds tp;        // collectives
  Seconds pp;        // messages to and from the neighbour stages, per layer of a stage
  Seconds dp;        // gradients and parameters, per layer of a stage and micro-batch
  [[nodiscard]] Seconds total() const { return cp + tp + pp + dp; }
};

/// Prices one placement. recipe.rank_order is ignored in favour of the placement's. The recipe must be legal and fit the cluster.
/// Every axis is priced with all its groups at once and the other axes silent; links of all axes together: placed_links.
[[nodiscard]] PlacementPrice price_placement(const ScreenContext& context, const Recipe& recipe, const Placement& placement);

/// Bytes and busy time per directed link and optimizer step, all axes, busiest first, at most `limit` (link_loads.h).
[[nodiscard]] std::vector<LinkLoad> placed_links(const ScreenContext& context, const Recipe& recipe, const Placement& placement,
                                                 std::size_t limit);

/// `a` is worth having instead of `b`: the shorter total (beyond one part in a million); of equals fewer hops between rails, then
/// fewer between sockets, then fewer as slow as the slowest.
[[nodiscard]] bool cheaper(const PlacementPrice& a, const PlacementPrice& b);

}  // namespace cpfit
