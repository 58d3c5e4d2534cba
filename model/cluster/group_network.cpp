#include "model/cluster/group_network.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <span>

#include "model/cluster/concurrent_flows.h"
#include "model/cluster/idle_network.h"
#include "model/quantity/index.h"

namespace cpfit {
namespace {

constexpr std::int64_t kLargestExactAllToAll = 256;  // members; beyond, no recipe exchanges heads
constexpr std::int64_t kLargestExactRanks = 4096;    // ranks routed; beyond, groups span much of a large cluster: dp, pp
constexpr std::int64_t kFlowBudget = 24000;          // all-to-all flows routed before distant shifts are sampled

/// Ranks after which leaves repeat with the same pattern: rank r + period is on the next unit's (next pod's) leaf. All ranks when
/// that cannot be shown.
std::int64_t network_period(const Cluster& cluster) {
  const Topology& topology = *cluster.topology;
  const std::int64_t ranks = cluster.gpus();
  if (!topology.nodes_alike()) return ranks;
  // Leaves, then pods, numbered by first appearance; a period exists if rank r + p always lies `step` numbers further.
  const auto period_of = [&](auto&& group_of) -> std::int64_t {
    std::vector<std::int32_t> ordinal(at(ranks));
    std::map<std::int32_t, std::int32_t> seen;
    for (std::int64_t r = 0; r < ranks; ++r) {
      const std::int32_t group = group_of(r);
      if (group < 0) return 1;  // one host: no fabric
      ordinal[at(r)] = seen.try_emplace(group, static_cast<std::int32_t>(seen.size())).first->second;
    }
    std::int32_t in_first_host = 0;
    for (std::int64_t r = 0; r < cluster.gpus_per_node; ++r) in_first_host = std::max(in_first_host, ordinal[at(r)] + 1);
    if (in_first_host == static_cast<std::int32_t>(seen.size())) return cluster.gpus_per_node;  // one unit, one pod
    std::int64_t period = cluster.gpus_per_node;  // first rank, host by host, whose leaf no earlier host used
    const std::int32_t step = in_first_host;
    while (period < ranks && ordinal[at(period)] < step) period += cluster.gpus_per_node;
    for (std::int64_t r = period; r < ranks; ++r) {
      if (ordinal[at(r)] != ordinal[at(r - period)] + step) return ranks;
    }
    return period;
  };
  return std::min(ranks, std::lcm(period_of([&](std::int64_t r) { return topology.leaf_of(r); }),
                                  period_of([&](std::int64_t r) { return topology.pod_of(r); })));
}

/// Members are first + i * stride; groups of one block interleave, blocks follow each other.
struct Groups {
  GroupShape shape;
  std::int64_t ranks = 0;  // routed: a whole number of blocks
  [[nodiscard]] std::int64_t block() const { return shape.stride * shape.size; }
  [[nodiscard]] std::int64_t position(std::int64_t rank) const { return rank % block() / shape.stride; }
  /// The member `shift` places further round the ring of `rank`.
  [[nodiscard]] std::int64_t shifted(std::int64_t rank, std::int64_t shift) const {
    const std::int64_t from = position(rank);
    return rank + ((from + shift) % shape.size - from) * shape.stride;
  }
};

Groups groups_to_route(const Cluster& cluster, GroupShape shape, std::int64_t period) {
  Groups groups{shape, 0};
  const std::int64_t block = groups.block();
  const std::int64_t all = cluster.gpus() / block * block;
  if (shape.size < 1 || shape.stride < 1 || all < 1) {
    std::fprintf(stderr, "cpfit: internal error: group shape stride %lld size %lld on %lld GPUs\n",
                 static_cast<long long>(shape.stride), static_cast<long long>(shape.size),
                 static_cast<long long>(cluster.gpus()));
    std::abort();
  }
  const std::int64_t repeats = period >= cluster.gpus() ? all : std::lcm(std::lcm(block, domain_ranks(cluster)), period);
  groups.ranks = std::min(all, repeats);
  return groups;
}

void add_shifted(ConcurrentFlows& flows, const Groups& groups, std::int64_t shift) {
  for (std::int64_t rank = 0; rank < groups.ranks; ++rank) flows.add(rank, groups.shifted(rank, shift), 1.0);
}

/// The worst hop of rings whose neighbours have communicators of their own.
HopNetwork pair_ring(const Cluster& cluster, const Groups& groups) {
  ConcurrentFlows flows(*cluster.topology);
  for (std::int64_t rank = 0; rank < groups.ranks; ++rank) flows.add_pair(rank, groups.shifted(rank, 1), 1.0);
  return flows.named_hop(judge_rings(flows, domain_ranks(cluster)).worst);
}

/// How a group lies over the domains: the most domains a group spans, the fewest members it has in one of them.
void count_domains(const Cluster& cluster, const Groups& groups, GroupNetwork& network) {
  const std::int64_t domain = domain_ranks(cluster), block = groups.block();
  network.members_per_domain = static_cast<std::int32_t>(groups.shape.size);
  network.domains = 1;
  const std::int64_t repeats = std::min(groups.ranks, std::lcm(block, domain));
  for (std::int64_t base = 0; base < repeats; base += block) {
    for (std::int64_t lane = 0; lane < groups.shape.stride; ++lane) {
      std::int32_t spanned = 0, here = 0;
      std::int64_t current = -1;
      const auto close = [&] {
        if (here > 0) network.members_per_domain = std::min(network.members_per_domain, here);
      };
      for (std::int64_t i = 0; i < groups.shape.size; ++i) {
        const std::int64_t in = (base + lane + i * groups.shape.stride) / domain;
        if (in != current) {
          close();
          current = in;
          here = 0;
          ++spanned;
        }
        ++here;
      }
      close();
      network.domains = std::max(network.domains, spanned);
    }
  }
}

/// Worst scale_up_rate over the groups that begin in the first domain.
double inner_collective_rate(const Cluster& cluster, const Groups& groups, const GroupNetwork& network) {
  double slowest = kNoRateLimit;
  const std::int64_t domain = domain_ranks(cluster);
  for (std::int64_t rank = 0; rank < std::min(domain, groups.ranks); ++rank) {
    if (groups.position(rank) != 0) continue;
    std::vector<std::int64_t> members;
    for (std::int64_t i = 0; i < groups.shape.size; ++i) {
      const std::int64_t member = rank + i * groups.shape.stride;
      if (member / domain == rank / domain) members.push_back(member);
    }
    if (members.size() < 2) continue;
    const double rate = scale_up_rate(*cluster.topology, members);
    slowest = std::min(slowest, rate > 0 ? rate : network.inner_hop.rate.value());
  }
  return slowest;
}

/// Shifts of the exchange and how often each stands in: all of them, or all near ones and a sample of the distant ones.
std::vector<std::pair<std::int64_t, double>> shifts_to_route(const Cluster& cluster, const Groups& groups) {
  const std::int64_t size = groups.shape.size;
  std::vector<std::pair<std::int64_t, double>> shifts;
  if (groups.ranks * (size - 1) <= kFlowBudget) {
    for (std::int64_t shift = 1; shift < size; ++shift) shifts.emplace_back(shift, 1.0);
    return shifts;
  }
  const std::int64_t reach = (domain_ranks(cluster) - 1) / groups.shape.stride;  // shifts that may stay in a domain
  std::vector<std::int64_t> distant;
  for (std::int64_t shift = 1; shift < size; ++shift) {
    if (std::min(shift, size - shift) <= reach) {
      shifts.emplace_back(shift, 1.0);
    } else {
      distant.push_back(shift);
    }
  }
  const auto count = static_cast<std::int64_t>(distant.size());
  const std::int64_t samples =
      std::min(count, std::max<std::int64_t>(8, kFlowBudget / groups.ranks - static_cast<std::int64_t>(shifts.size())));
  for (std::int64_t i = 0; i < samples; ++i) {  // golden-ratio points: even, and in step with no rail count
    const double turn = (static_cast<double>(i) + 0.5) * 0.6180339887498949;
    const auto index = samples == count ? i : static_cast<std::int64_t>((turn - std::floor(turn)) * static_cast<double>(count));
    shifts.emplace_back(distant[at(index)], static_cast<double>(count) / static_cast<double>(samples));
  }
  return shifts;
}

double exchange_rate(const Cluster& cluster, const Groups& groups, ConcurrentFlows& flows) {
  flows.clear();
  for (const auto& [shift, times] : shifts_to_route(cluster, groups)) {
    const double weight = times / static_cast<double>(groups.shape.size - 1);
    for (std::int64_t rank = 0; rank < groups.ranks; ++rank) flows.load_only(rank, groups.shifted(rank, shift), weight);
  }
  return flows.largest_scale();
}

/// The limit of PCIe boxes, at one member of the first group: their GPUs are alike.
double limit_through_cpus(const Cluster& cluster, const Groups& groups) {
  if (cluster.scale_up_domain >= cluster.gpus_per_node) return kNoRateLimit;
  std::vector<std::int64_t> peers;
  for (std::int64_t shift = 1; shift < groups.shape.size; ++shift) {
    if (groups.shifted(0, shift) < cluster.gpus_per_node) peers.push_back(groups.shifted(0, shift));
  }
  return peers.empty() ? kNoRateLimit : exchange_through_cpus(*cluster.topology, 0, peers);
}

GroupNetwork price(const Cluster& cluster, GroupShape shape, std::int64_t period) {
  const Groups groups = groups_to_route(cluster, shape, period);
  if (shape.size == 1) return idle_network(cluster, shape);
  GroupNetwork network;
  network.shape = shape;
  count_domains(cluster, groups, network);

  ConcurrentFlows flows(*cluster.topology);
  add_shifted(flows, groups, 1);
  const RingJudgement judged = judge_rings(flows, domain_ranks(cluster));
  network.ring = flows.named_hop(judged.worst);
  network.pair_ring = network.ring.crosses_node ? pair_ring(cluster, groups) : network.ring;
  network.inner_hop = judged.worst_inner < 0 ? network.ring : flows.named_hop(static_cast<std::size_t>(judged.worst_inner));
  network.rings_leaving = judged.leaving;

  const bool has_inner = network.members_per_domain > 1 || network.domains == 1;
  double collective = has_inner ? inner_collective_rate(cluster, groups, network) : kNoRateLimit;
  network.collective_link = network.inner_hop.slowest;
  double nic = kNoRateLimit;
  if (network.domains > 1) {
    // Collectives cross between equal places of neighbouring domains; with one member per domain that is the ring itself.
    RingJudgement crossing = judged;
    if (network.members_per_domain > 1) {
      flows.clear();
      add_shifted(flows, groups, network.members_per_domain);
      crossing = judge_rings(flows, domain_ranks(cluster));
    }
    nic = crossing.nic_share;
    if (network.members_per_domain * nic < collective) {
      collective = network.members_per_domain * nic;
      network.collective_link = crossing.nic_limit;
    }
  }
  network.collective_rate = BytesPerSecond(collective);
  const double remote = static_cast<double>(shape.size - network.members_per_domain) / static_cast<double>(shape.size - 1);
  const bool closed_form = network.domains > 1 && (shape.size > kLargestExactAllToAll || groups.ranks > kLargestExactRanks);
  network.alltoall_rate = BytesPerSecond(
      std::min(closed_form ? nic / remote : exchange_rate(cluster, groups, flows), limit_through_cpus(cluster, groups)));
  return network;
}

}  // namespace

std::vector<RingHop> ring_hops(const Cluster& cluster, GroupShape shape) {
  const Groups groups = groups_to_route(cluster, shape, cluster.gpus());
  std::vector<RingHop> hops;
  if (shape.size == 1) return hops;
  ConcurrentFlows flows(*cluster.topology);
  add_shifted(flows, groups, 1);
  for (std::int64_t i = 0; i < shape.size; ++i) {
    const std::size_t flow = at(i * shape.stride);
    hops.push_back({flows.source(flow), flows.target(flow), flows.named_hop(flow)});
  }
  return hops;
}

GroupNetwork price_group(const Cluster& cluster, GroupShape shape) { return price(cluster, shape, network_period(cluster)); }

NetworkView::NetworkView(const Cluster& cluster) : cluster_(cluster), period_(network_period(cluster)) {}

void NetworkView::prepare(GroupShape shape) {
  if (!known_.contains(shape)) known_.emplace(shape, price(cluster_, shape, period_));
}

const GroupNetwork& NetworkView::at(GroupShape shape) const {
  const auto found = known_.find(shape);
  if (found == known_.end()) {
    std::fprintf(stderr, "cpfit: internal error: group shape stride %lld size %lld was not prepared\n",
                 static_cast<long long>(shape.stride), static_cast<long long>(shape.size));
    std::abort();
  }
  return found->second;
}

}  // namespace cpfit
