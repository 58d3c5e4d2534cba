// Flows that run at the same time, counted per directed link: what the pricing of group shapes (group_network.h) and of explicit
// lists of members (member_network.h) have in common. Private to model/cluster.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "model/cluster/group_network.h"

namespace cpfit {

inline constexpr double kNoRateLimit = std::numeric_limits<double>::infinity();

/// Flows with their routes, and the weight of flows on every directed link. One object serves many questions: clear() forgets
/// flows and loads but keeps the memory.
class ConcurrentFlows {
 public:
  explicit ConcurrentFlows(const Topology& topology) : topology_(topology), load_(topology.links().size(), 0.0) {}

  void clear();
  void add(std::int64_t from, std::int64_t to, double weight);
  /// As add, of a pair with a communicator of its own: equal parts of it over each of its ways (Topology::pair_routes_into).
  void add_pair(std::int64_t from, std::int64_t to, double weight);
  /// As add, without keeping the route: only the loads matter.
  void load_only(std::int64_t from, std::int64_t to, double weight);

  [[nodiscard]] std::size_t size() const { return flows_.size(); }
  [[nodiscard]] std::int64_t source(std::size_t flow) const { return flows_[flow].from; }
  [[nodiscard]] std::int64_t target(std::size_t flow) const { return flows_[flow].to; }

  /// Share of the slowest link of a flow, without that link's name; 0 when there is no route at all.
  [[nodiscard]] HopNetwork hop(std::size_t flow) const;
  /// hop() with the name of its slowest link.
  [[nodiscard]] HopNetwork named_hop(std::size_t flow) const;
  /// Link indices of a flow's route, of all its ways one behind the other.
  [[nodiscard]] std::span<const std::int32_t> route(std::size_t flow) const;
  /// Largest factor by which every weight can grow before a link is full.
  [[nodiscard]] double largest_scale() const;

 private:
  struct Flow {
    std::int64_t from, to, end;
    std::int64_t first_end = 0;  // behind its first way
    std::int32_t ways = 1;
  };
  HopNetwork hop(std::size_t flow, std::int32_t& slowest_link) const;
  void load(std::int32_t link, double weight);

  const Topology& topology_;
  std::vector<double> load_;
  std::vector<std::int32_t> buffer_, links_, touched_;
  std::vector<std::size_t> ends_;
  std::vector<Flow> flows_;
};

/// What a GPU sends to several peers at once through a CPU's root complex is this over their number, bytes/s: CPUs make poor PCIe
/// switches of peer-to-peer traffic. Measured: 2 GB/s per GPU in all-to-alls of four cards on one socket (NVIDIA/nccl#1603); 1.4
/// to 1.5 over eight and 2.8 to 3.6 over four L20 of one box (USP paper, Table 3, and yunchang's PCIe picture, rows on even
/// lines). Rings and exchanges of two in that box lose nothing. 80 % of it is what a link's curve leaves.
inline constexpr double kPeerThroughCpu = 13e9;

/// Largest injection of `member` into an all-to-all with `peers` (GPUs) that its way through CPUs allows; kNoRateLimit where
/// links or PCIe switches join them, or a fabric.
[[nodiscard]] double exchange_through_cpus(const Topology& topology, std::int64_t member, std::span<const std::int64_t> peers);

struct RingJudgement {
  std::size_t worst = 0;            // flow
  std::ptrdiff_t worst_inner = -1;  // -1: every hop leaves the domain
  double nic_share = kNoRateLimit;  // of the worst hop that leaves
  LinkClass nic_limit = LinkClass::kNic;
  std::int32_t leaving = 0;  // hops that leave the busiest domain
};
/// Worst hops over all flows: slower first, of equals the longer latency, then the earlier flow. `domain`: GPUs of one domain.
[[nodiscard]] RingJudgement judge_rings(const ConcurrentFlows& flows, std::int64_t domain);

/// Rate per member inside a domain over scale-up links to the other members (or to the plane they share), of a mesh what its
/// rings move; 0 when these links do not join the members (GPU indices), or no ring closes over them.
[[nodiscard]] double scale_up_rate(const Topology& topology, std::span<const std::int64_t> members);

}  // namespace cpfit
