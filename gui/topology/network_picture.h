// What the topology view draws, as one immutable value: the cluster's graph, what every directed link carries in one step under a
// recipe, who sends how much to whom, and the CP rings on it. Built away from the window's thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gui/study/simulator.h"
#include "model/cluster/cluster.h"
#include "model/cluster/member_network.h"
#include "model/cluster/topology.h"
#include "sim/plan/step_flows.h"

namespace cpfit::gui {

/// What a link carries in one optimizer step.
struct LinkTraffic {
  double bytes = 0;
  std::int64_t flows = 0;        // pairs of ranks that use it
  double share = 0;              // of the step during which it would be busy at its capacity; of what it can carry
  double highest = 0;            // highest share at any instant of the simulated step; 0 where none was simulated
  std::int64_t busiest_at = -1;  // picoseconds; -1: not simulated
};

struct PairFlow {
  std::int64_t from = 0, to = 0;  // ranks
  Axis axis = Axis::kTp;
  double bytes = 0;
};

/// One hop of a CP ring with what it gets while all rings run.
struct RingHopPicture {
  std::int64_t from = 0, to = 0;  // ranks, which are GPUs as numbered
  HopNetwork network;
  std::vector<std::int32_t> links;
};
struct RingPicture {
  std::vector<std::int64_t> ranks;
  std::vector<RingHopPicture> hops;
  [[nodiscard]] std::int64_t leaving() const;
};

/// A what-if on one directed link.
struct LinkEdit {
  BytesPerSecond capacity;
  Seconds latency;
  friend bool operator==(const LinkEdit&, const LinkEdit&) = default;
};
using LinkEdits = std::map<std::int32_t, LinkEdit>;  // by index into Topology::links()

/// The same cluster with the edited links; vertices, names and order of the links stay. Problems: a capacity that is no number
/// above zero, a negative latency.
[[nodiscard]] Outcome<Cluster> edited_cluster(const Cluster& cluster, const LinkEdits& edits);

/// Another place of the ranks that the study can take: of the recipe and of its cluster.
struct BetterPlacement {
  RankOrder rank_order;
  DeviceOrders device_orders;
};

struct NetworkPicture {
  Cluster cluster;
  Recipe recipe;
  Seconds step;                           // what shares refer to
  std::vector<LinkTraffic> links;         // (links)
  std::vector<PairFlow> flows;            // of the ranks that are routed
  std::vector<RingPicture> rings;         // of the first kDrawnRings CP groups
  std::vector<std::int32_t> worst;        // links that carry something, highest share first
  std::string why_this_order;             // sentences on the rings
  std::optional<BetterPlacement> better;  // what the last of them proposes
  std::string note;                       // what was left out; empty: nothing
  [[nodiscard]] const Topology& topology() const { return *cluster.topology; }
  [[nodiscard]] std::string link_name(std::int32_t link) const;  // "n0.gpu3 -> n0.nvsw0"
};
inline constexpr std::size_t kDrawnRings = 64;

/// `step` is the step's time, simulated or of the screen.
[[nodiscard]] std::shared_ptr<const NetworkPicture> network_picture(const ScreenContext& context, const Recipe& recipe,
                                                                    Seconds step);
/// A cluster without a recipe: the graph alone.
[[nodiscard]] std::shared_ptr<const NetworkPicture> network_picture(const Cluster& cluster);

}  // namespace cpfit::gui
