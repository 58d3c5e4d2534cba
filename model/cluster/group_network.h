// What a process group sees of the network when every group of its shape communicates at once: flows are routed on the
// topology graph, counted per directed link, and the slowest share gives the rate. The screen reads these; the timeline
// simulates the same routes as flows. Rates are raw link capacities; what NCCL achieves of them is in the rates.
//
// "Domain" here is what a group can cross without a NIC: the scale-up domain, or the host where that is larger (PCIe boxes,
// bridged pairs).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/cluster/cluster.h"
#include "model/cluster/topology.h"
#include "model/recipe/rank_grid.h"

namespace cpfit {

/// One hop of a ring, the slowest of all concurrent rings.
struct HopNetwork {
  BytesPerSecond rate;  // capacity share of the slowest link on the worst hop, all concurrent flows counted
  Seconds latency;      // sum of link latencies of that hop
  LinkClass slowest = LinkClass::kNvlink;
  std::int32_t flows = 1;      // flows sharing that slowest link
  std::int32_t nic_ports = 1;  // NICs that the hop's NIC stands for, where it passes one
  bool crosses_node = false;   // leaves over a NIC; NVLink between the trays of one NVL72 does not count
  std::string link;            // "n0.nic7 -> leaf7"
};

struct GroupNetwork {
  GroupShape shape;
  std::int32_t members_per_domain = 1;  // members of one group inside one scale-up domain
  std::int32_t domains = 1;             // scale-up domains a group spans
  HopNetwork ring;                      // neighbour hop of the ring in rank order, worst
  HopNetwork pair_ring;  // the same where every pair of neighbours has a communicator of its own: over several NICs
  HopNetwork inner_hop;  // hop inside a domain (equals ring when domains == 1)
  BytesPerSecond
      collective_rate;  // bus rate per member of ring collectives (AG, RS): min(scale-up, members_per_domain * NIC share)
  BytesPerSecond alltoall_rate;               // per member, injection: mixes scale-up and NIC share by destination
  Seconds all_reduce_latency, round_latency;  // measured in a job, beyond the rates: of an all-reduce; of a gather or scatter
  LinkClass collective_link = LinkClass::kNvlink;
  bool measured = false;           // the rates are a job's own: whatever NCCL made of the network is in them
  std::int32_t rings_leaving = 0;  // ring hops that leave the busiest domain at the same time, over all groups
};

/// GPUs of one domain (see the top).
[[nodiscard]] inline std::int64_t domain_ranks(const Cluster& cluster) {
  return cluster.scale_up_domain > cluster.gpus_per_node ? cluster.scale_up_domain : cluster.gpus_per_node;
}

/// One hop of the ring of the group of rank 0, with what all concurrent rings leave it.
struct RingHop {
  std::int64_t from = 0, to = 0;  // ranks
  HopNetwork network;
};
[[nodiscard]] std::vector<RingHop> ring_hops(const Cluster& cluster, GroupShape shape);

/// Prices one shape: routes the flows of every concurrent group. stride * size must not exceed the GPUs (our mistake: aborts).
/// A shape of size 1 sends nothing: its rates are the device's own scale-up (or PCIe) rate.
/// ring: each member to the next, wrap-around included; worst share over all rings.
/// collective_rate: inside a domain the sum of a member's links to the others (NVSwitch or mesh), else the ring's share; between
///   domains k NIC shares for k members per domain (measured: all-reduce over 2 x 8 H100 exceeds one NIC eightfold).
/// alltoall_rate: the largest injection per member at which no link is above its capacity, destinations weighted evenly. Groups
///   above 256 members, and groups whose pattern covers more than 4,096 ranks, use (size - k)/(size - 1) of the traffic over the
///   NIC share instead. Between these, exchanges of more than 24,000 flows route all near shifts and a sample of the distant
///   ones: the sample matters only where the spine is oversubscribed.
/// On regular clusters only the ranks of one period of (group, domain, leaf unit, pod) are routed: the rest repeats.
[[nodiscard]] GroupNetwork price_group(const Cluster& cluster, GroupShape shape);

/// Prices groups on one cluster. Values are computed on first use by `prepare` and then only read, so that a parallel search
/// shares one object.
class NetworkView {
 public:
  explicit NetworkView(const Cluster& cluster);
  /// Computes the shape if absent. Not thread safe.
  void prepare(GroupShape shape);
  [[nodiscard]] bool prepared(GroupShape shape) const { return known_.contains(shape); }
  [[nodiscard]] const Cluster& cluster() const { return cluster_; }
  /// Looks a prepared shape up; aborts when it was not prepared (our mistake). Thread safe.
  [[nodiscard]] const GroupNetwork& at(GroupShape shape) const;
  /// Puts measured figures in place of what the topology gives for network.shape. Not thread safe.
  void set(const GroupNetwork& network) { known_.insert_or_assign(network.shape, network); }

 private:
  Cluster cluster_;
  std::int64_t period_;  // ranks after which the network repeats; all ranks when it does not
  std::map<GroupShape, GroupNetwork> known_;
};

}  // namespace cpfit
