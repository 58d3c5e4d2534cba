#include "model/cluster/member_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "model/cluster/concurrent_flows.h"
#include "model/cluster/idle_network.h"
#include "model/quantity/index.h"

namespace cpfit {
namespace {

using Group = std::vector<std::int64_t>;

/// Members of one group by domain, each in GPU order.
std::map<std::int64_t, Group> by_domain(const Group& group, std::int64_t domain) {
  std::map<std::int64_t, Group> parts;
  for (const std::int64_t gpu : group) parts[gpu / domain].push_back(gpu);
  for (auto& [index, members] : parts) std::sort(members.begin(), members.end());
  return parts;
}

/// The shift `by` round every group.
void add_shift(ConcurrentFlows& flows, std::span<const Group> groups, std::size_t by) {
  for (const Group& group : groups) {
    for (std::size_t i = 0; i < group.size(); ++i) flows.add(group[i], group[(i + by) % group.size()], 1.0);
  }
}

/// Slowest scale-up rate over all groups and domains. Where hosts are alike, equal places in them are asked once.
double inner_rate(const Cluster& cluster, std::span<const Group> groups, const GroupNetwork& network) {
  const std::int64_t domain = domain_ranks(cluster);
  const bool alike = cluster.topology->nodes_alike() && domain == cluster.gpus_per_node;
  std::set<Group> asked;
  double slowest = kNoRateLimit;
  for (const Group& group : groups) {
    for (const auto& [index, members] : by_domain(group, domain)) {
      if (members.size() < 2) continue;
      Group places = members;
      if (alike)
        for (std::int64_t& place : places) place -= index * domain;
      if (!asked.insert(places).second) continue;
      const double rate = scale_up_rate(*cluster.topology, members);
      slowest = std::min(slowest, rate > 0 ? rate : network.inner_hop.rate.value());
    }
  }
  return slowest;
}

double exchange_rate(const Cluster& cluster, std::span<const Group> groups) {
  ConcurrentFlows flows(*cluster.topology);
  for (const Group& group : groups) {
    const double weight = 1.0 / static_cast<double>(group.size() - 1);
    for (const std::int64_t from : group) {
      for (const std::int64_t to : group)
        if (from != to) flows.load_only(from, to, weight);
    }
  }
  return flows.largest_scale();
}

}  // namespace

FlowRoute flow_route(const Topology& topology, std::int64_t a, std::int64_t b) {
  FlowRoute found;
  const std::vector<std::int32_t> route = topology.route(a, b);
  found.reachable = a == b || !route.empty();
  for (std::size_t i = 0; i < route.size(); ++i) {
    const Link& link = topology.links()[at(route[i])];
    if (i == 0 || link.capacity < found.rate) {
      found.rate = link.capacity;
      found.narrowest = link.link_class;
    }
    found.latency += link.latency;
    found.crosses_node |= link.link_class == LinkClass::kNic;
    found.crosses_socket |= link.link_class == LinkClass::kSocket;
    found.crosses_spine |= link.link_class == LinkClass::kSpine;
    if (i + 1 < route.size() && topology.vertices()[at(link.to)].kind == VertexKind::kGpu) ++found.relays;
  }
  if (found.crosses_spine && topology.nic_of(a) >= 0 && topology.nic_of(b) >= 0)
    found.crosses_rail = topology.vertices()[at(topology.nic_of(a))].rail != topology.vertices()[at(topology.nic_of(b))].rail;
  return found;
}

std::string route_text(const Topology& topology, std::int64_t a, std::int64_t b) {
  const FlowRoute route = flow_route(topology, a, b);
  if (!route.reachable) return "no route";
  if (route.crosses_node) {
    const auto rail = [&](std::int64_t gpu) {
      return topology.nic_of(gpu) < 0 ? -1 : topology.vertices()[at(topology.nic_of(gpu))].rail;
    };
    if (rail(a) == rail(b)) return fmt::format("rail {}{}", rail(a), route.crosses_spine ? ", spine" : "");
    return fmt::format("rail {} to {}{}", rail(a), rail(b), route.crosses_spine ? "" : ", one leaf");
  }
  const std::string text = std::string(name_of(route.crosses_socket ? LinkClass::kPcie : route.narrowest));
  if (route.crosses_socket) return text + " and socket";
  return route.relays > 0 ? fmt::format("{} over {} GPU{}", text, route.relays, route.relays > 1 ? "s" : "") : text;
}

std::vector<HopNetwork> concurrent_hops(const Topology& topology, std::span<const GpuFlow> flows) {
  ConcurrentFlows running(topology);
  for (const GpuFlow& flow : flows) running.add(flow.from, flow.to, 1.0);
  std::vector<HopNetwork> hops;
  hops.reserve(flows.size());
  for (std::size_t i = 0; i < flows.size(); ++i) hops.push_back(running.named_hop(i));
  return hops;
}

GroupNetwork price_members(const Cluster& cluster, std::span<const Group> groups, bool exchange) {
  const std::int64_t domain = domain_ranks(cluster);
  const GroupShape shape{0, groups.empty() ? 1 : static_cast<std::int64_t>(groups.front().size())};
  if (shape.size == 1) return idle_network(cluster, shape);
  GroupNetwork network;
  network.shape = shape;
  network.members_per_domain = static_cast<std::int32_t>(shape.size);
  std::vector<Group> placed;  // domain after domain, in GPU order: how collectives cross
  for (const Group& group : groups) {
    const std::map<std::int64_t, Group> parts = by_domain(group, domain);
    network.domains = std::max(network.domains, static_cast<std::int32_t>(parts.size()));
    Group& ordered = placed.emplace_back();
    for (const auto& [index, members] : parts) {
      network.members_per_domain = std::min(network.members_per_domain, static_cast<std::int32_t>(members.size()));
      ordered.insert(ordered.end(), members.begin(), members.end());
    }
  }
  ConcurrentFlows flows(*cluster.topology);
  add_shift(flows, groups, 1);
  const RingJudgement judged = judge_rings(flows, domain);
  network.ring = flows.named_hop(judged.worst);
  network.pair_ring = network.ring;
  if (network.ring.crosses_node) {
    ConcurrentFlows pairs(*cluster.topology);
    for (const Group& group : groups) {
      for (std::size_t i = 0; i < group.size(); ++i) pairs.add_pair(group[i], group[(i + 1) % group.size()], 1.0);
    }
    network.pair_ring = pairs.named_hop(judge_rings(pairs, domain).worst);
  }
  network.inner_hop = judged.worst_inner < 0 ? network.ring : flows.named_hop(static_cast<std::size_t>(judged.worst_inner));
  network.rings_leaving = judged.leaving;

  const bool has_inner = network.members_per_domain > 1 || network.domains == 1;
  double collective = has_inner ? inner_rate(cluster, groups, network) : kNoRateLimit;
  network.collective_link = network.inner_hop.slowest;
  if (network.domains > 1) {
    flows.clear();
    add_shift(flows, placed, at(network.members_per_domain));
    const RingJudgement crossing = judge_rings(flows, domain);
    if (network.members_per_domain * crossing.nic_share < collective) {
      collective = network.members_per_domain * crossing.nic_share;
      network.collective_link = crossing.nic_limit;
    }
  }
  network.collective_rate = BytesPerSecond(collective);
  if (exchange) {
    const Group& first = groups.front();
    Group peers;
    for (const std::int64_t member : first) {
      if (member != first.front() && member / cluster.gpus_per_node == first.front() / cluster.gpus_per_node)
        peers.push_back(member);
    }
    const bool box = cluster.scale_up_domain < cluster.gpus_per_node && !peers.empty();
    const double through = box ? exchange_through_cpus(*cluster.topology, first.front(), peers) : kNoRateLimit;
    network.alltoall_rate = BytesPerSecond(std::min(exchange_rate(cluster, groups), through));
  }
  return network;
}

}  // namespace cpfit
