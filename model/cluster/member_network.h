// What process groups see of the network when their members are listed GPU by GPU instead of lying at a stride: the groups of a
// placement. The rules are those of group_network.h, and groups listed at a stride get the same figures.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/cluster/group_network.h"

namespace cpfit {

/// How a flow between two GPUs travels.
struct FlowRoute {
  bool reachable = false;
  LinkClass narrowest = LinkClass::kNvlink;  // class of the link with the least capacity
  BytesPerSecond rate;                       // its capacity: what the flow gets alone
  Seconds latency;                           // sum over the links
  std::int32_t relays = 0;                   // GPUs passed on the way
  bool crosses_node = false;                 // over a NIC
  bool crosses_socket = false;
  bool crosses_spine = false;
  bool crosses_rail = false;  // between NICs of different rails on different leaves, which only a spine joins
};
/// GPU indices; a == b is reachable over nothing (our mistake: rate 0).
[[nodiscard]] FlowRoute flow_route(const Topology& topology, std::int64_t a, std::int64_t b);
/// "nvlink", "nvlink over 1 GPU", "pcie", "pcie and socket", "rail 6", "rail 6, spine" (the same
/// rail of another unit), "rail 6 to 0" (over a spine), "rail 6 to 0, one leaf", "no route".
[[nodiscard]] std::string route_text(const Topology& topology, std::int64_t a, std::int64_t b);

struct GpuFlow {
  std::int64_t from = 0, to = 0;  // GPU indices
  friend bool operator==(const GpuFlow&, const GpuFlow&) = default;
};
/// What each flow gets while all of them run at once, in the order given: (flows).
[[nodiscard]] std::vector<HopNetwork> concurrent_hops(const Topology& topology, std::span<const GpuFlow> flows);

/// Prices groups of GPU indices, each in ring order, all of one size and disjoint; all of them communicate at once. As
/// price_group, with `shape` {0, size}; alltoall_rate only with `exchange`, which routes size - 1 flows per member. Collectives
/// between domains run between members of equal place within their domains, counted in GPU order.
[[nodiscard]] GroupNetwork price_members(const Cluster& cluster, std::span<const std::vector<std::int64_t>> groups,
                                         bool exchange);

}  // namespace cpfit
