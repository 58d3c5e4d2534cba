// What a process group sees of the network when every group of its shape communicates at once: flows are routed on the
// topology graph, counted per directed link, and the slowest share gives the rate. The screen reads these; the timeline
// simulates the same routes as flows.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "model/cluster/cluster.h"
#include "model/cluster/topology.h"
#include "model/recipe/rank_grid.h"

namespace cpfit {

/// One hop of a ring, the slowest of all concurrent rings.
struct HopNetwork {
  BytesPerSecond rate;  // capacity share of the slowest link on the worst hop, all concurrent flows counted
  Seconds latency;      // sum of link latencies of that hop
  LinkClass slowest = LinkClass::kNvlink;
  std::int32_t flows = 1;  // flows sharing that slowest link
  bool crosses_node = false;
  std::string link;  // "n0.nic7 -> leaf7"
};

struct GroupNetwork {
  GroupShape shape;
  std::int32_t members_per_domain = 1;  // members of one group inside one scale-up domain
  std::int32_t domains = 1;             // scale-up domains a group spans
  HopNetwork ring;                      // neighbour hop of the ring in rank order, worst
  HopNetwork inner_hop;                 // hop inside a domain (equals ring when domains == 1)
  BytesPerSecond
      collective_rate;  // bus rate per member of ring collectives (AG, RS): min(scale-up, members_per_domain * NIC share)
  BytesPerSecond alltoall_rate;  // per member, injection: mixes scale-up and NIC share by destination
  LinkClass collective_link = LinkClass::kNvlink;
};

/// Prices groups on one cluster. Values are computed on first use by `prepare` and then only read, so that a parallel search
/// shares one object.
class NetworkView {
 public:
  explicit NetworkView(const Cluster& cluster);
  /// Computes the shape if absent. Not thread safe.
  void prepare(GroupShape shape);
  /// Looks a prepared shape up; aborts when it was not prepared (our mistake). Thread safe.
  [[nodiscard]] const GroupNetwork& at(GroupShape shape) const;

 private:
  Cluster cluster_;
  std::map<GroupShape, GroupNetwork> known_;
};

}  // namespace cpfit
