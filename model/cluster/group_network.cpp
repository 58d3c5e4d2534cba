#include "model/cluster/group_network.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <set>
#include <span>

namespace cpfit {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();
constexpr std::int64_t kLargestExactAllToAll = 256;  // members; beyond, no recipe exchanges heads
constexpr std::int64_t kLargestExactRanks = 4096;    // ranks routed; beyond, groups span much of a large cluster: dp, pp
constexpr std::int64_t kFlowBudget = 24000;          // all-to-all flows routed before distant shifts are sampled

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

std::int64_t domain_ranks(const Cluster& cluster) { return std::max(cluster.scale_up_domain, cluster.gpus_per_node); }

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

/// Flows with their routes, and the weight of flows on every directed link. One object serves all questions about a shape:
/// clear() forgets flows and loads but keeps the memory.
class Flows {
 public:
  explicit Flows(const Cluster& cluster) : topology_(*cluster.topology), load_(topology_.links().size(), 0.0) {}

  void clear() {
    for (const std::int32_t link : touched_) load_[at(link)] = 0.0;
    touched_.clear();
    links_.clear();
    flows_.clear();
  }

  void add(std::int64_t from, std::int64_t to, double weight) {
    load_only(from, to, weight);
    links_.insert(links_.end(), buffer_.begin(), buffer_.end());
    flows_.push_back({from, to, static_cast<std::int64_t>(links_.size())});
  }

  /// As add, without keeping the route: only the loads matter.
  void load_only(std::int64_t from, std::int64_t to, double weight) {
    topology_.route_into(from, to, buffer_);
    for (const std::int32_t link : buffer_) {
      if (load_[at(link)] == 0.0) touched_.push_back(link);
      load_[at(link)] += weight;
    }
  }

  [[nodiscard]] std::size_t size() const { return flows_.size(); }
  [[nodiscard]] std::int64_t source(std::size_t flow) const { return flows_[flow].from; }
  [[nodiscard]] std::int64_t target(std::size_t flow) const { return flows_[flow].to; }

  /// Share of the slowest link of a flow, without that link's name; 0 when there is no route at all.
  [[nodiscard]] HopNetwork hop(std::size_t flow) const {
    std::int32_t unused = -1;
    return hop(flow, unused);
  }

  /// hop() with the name of its slowest link.
  [[nodiscard]] HopNetwork named_hop(std::size_t flow) const {
    std::int32_t slowest = -1;
    HopNetwork result = hop(flow, slowest);
    if (slowest >= 0) {
      const Link& link = topology_.links()[at(slowest)];
      result.link = topology_.vertices()[at(link.from)].name + " -> " + topology_.vertices()[at(link.to)].name;
    }
    return result;
  }

  /// Largest factor by which every weight can grow before a link is full.
  [[nodiscard]] double largest_scale() const {
    double scale = kNoLimit;
    for (const std::int32_t link : touched_)
      scale = std::min(scale, topology_.links()[at(link)].capacity.value() / load_[at(link)]);
    return scale;
  }

 private:
  struct Flow {
    std::int64_t from, to, end;
  };

  HopNetwork hop(std::size_t flow, std::int32_t& slowest_link) const {
    HopNetwork hop;
    double slowest = kNoLimit;
    const std::int64_t begin = flow == 0 ? 0 : flows_[flow - 1].end;
    for (std::int64_t i = begin; i < flows_[flow].end; ++i) {
      const std::int32_t index = links_[at(i)];
      const Link& link = topology_.links()[at(index)];
      hop.latency += link.latency;
      const double share = link.capacity.value() / load_[at(index)];
      if (link.link_class == LinkClass::kNic) hop.crosses_node = true;
      if (share < slowest) {
        slowest = share;
        hop.slowest = link.link_class;
        hop.flows = static_cast<std::int32_t>(load_[at(index)] + 0.5);
        slowest_link = index;
      }
    }
    hop.rate = BytesPerSecond(slowest == kNoLimit ? 0.0 : slowest);
    return hop;
  }

  const Topology& topology_;
  std::vector<double> load_;
  std::vector<std::int32_t> buffer_, links_, touched_;
  std::vector<Flow> flows_;
};

/// Slower first; of equals the longer latency, then the earlier flow.
bool worse(const HopNetwork& a, const HopNetwork& b) { return a.rate < b.rate || (a.rate == b.rate && a.latency > b.latency); }

struct Rings {
  std::size_t worst = 0;
  std::ptrdiff_t worst_inner = -1;  // -1: every hop leaves the domain
  double nic_share = kNoLimit;      // of the worst hop that leaves
  LinkClass nic_limit = LinkClass::kNic;
  std::int32_t leaving = 0;
};

Rings judge(const Flows& flows, std::int64_t domain) {
  Rings rings;
  HopNetwork worst, worst_inner;
  std::vector<std::int32_t> leaving(flows.size() / at(domain) + 1);
  for (std::size_t flow = 0; flow < flows.size(); ++flow) {
    const HopNetwork hop = flows.hop(flow);
    if (flow == 0 || worse(hop, worst)) {
      worst = hop;
      rings.worst = flow;
    }
    if (hop.crosses_node) {
      rings.leaving = std::max(rings.leaving, ++leaving[at(flows.source(flow) / domain)]);
      if (hop.rate.value() < rings.nic_share) {
        rings.nic_share = hop.rate.value();
        rings.nic_limit = hop.slowest;
      }
    } else if (rings.worst_inner < 0 || worse(hop, worst_inner)) {
      worst_inner = hop;
      rings.worst_inner = static_cast<std::ptrdiff_t>(flow);
    }
  }
  return rings;
}

void add_shifted(Flows& flows, const Groups& groups, std::int64_t shift) {
  for (std::int64_t rank = 0; rank < groups.ranks; ++rank) flows.add(rank, groups.shifted(rank, shift), 1.0);
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

/// Rate per member inside a domain over scale-up links to the other members (or to the plane they share); 0 when these links do
/// not join the members.
double scale_up_rate(const Cluster& cluster, std::span<const std::int64_t> members) {
  const Topology& topology = *cluster.topology;
  std::vector<std::int32_t> route;
  std::vector<std::size_t> joined{0};  // members reached so far, by direct links
  std::vector<bool> reached(members.size(), false);
  reached[0] = true;
  double slowest = kNoLimit;
  for (std::size_t head = 0; head < members.size(); ++head) {
    if (head >= joined.size()) return 0.0;
    const std::size_t a = joined[head];
    std::map<std::int32_t, double> out;  // first link -> capacity: links to a plane count once
    for (std::size_t b = 0; b < members.size(); ++b) {
      if (a == b) continue;
      topology.route_into(members[a], members[b], route);
      const bool direct = !route.empty() && std::ranges::all_of(route, [&](std::int32_t index) {
        const Link& link = topology.links()[at(index)];
        const VertexKind end = topology.vertices()[at(link.to)].kind;
        return is_scale_up(link.link_class) && (end == VertexKind::kNvSwitch || index == route.back());
      });
      if (!direct) continue;
      double width = kNoLimit;
      for (const std::int32_t index : route) width = std::min(width, topology.links()[at(index)].capacity.value());
      out[route.front()] = std::max(out[route.front()], width);
      if (!reached[b]) {
        reached[b] = true;
        joined.push_back(b);
      }
    }
    double sum = 0;
    for (const auto& [link, width] : out) sum += width;
    slowest = std::min(slowest, sum);
  }
  return slowest;
}

/// Worst scale_up_rate over the groups that begin in the first domain.
double inner_collective_rate(const Cluster& cluster, const Groups& groups, const GroupNetwork& network) {
  double slowest = kNoLimit;
  const std::int64_t domain = domain_ranks(cluster);
  for (std::int64_t rank = 0; rank < std::min(domain, groups.ranks); ++rank) {
    if (groups.position(rank) != 0) continue;
    std::vector<std::int64_t> members;
    for (std::int64_t i = 0; i < groups.shape.size; ++i) {
      const std::int64_t member = rank + i * groups.shape.stride;
      if (member / domain == rank / domain) members.push_back(member);
    }
    if (members.size() < 2) continue;
    const double rate = scale_up_rate(cluster, members);
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

double exchange_rate(const Cluster& cluster, const Groups& groups, Flows& flows) {
  flows.clear();
  for (const auto& [shift, times] : shifts_to_route(cluster, groups)) {
    const double weight = times / static_cast<double>(groups.shape.size - 1);
    for (std::int64_t rank = 0; rank < groups.ranks; ++rank) flows.load_only(rank, groups.shifted(rank, shift), weight);
  }
  return flows.largest_scale();
}

GroupNetwork alone(const Cluster& cluster, GroupShape shape) {
  GroupNetwork network;
  network.shape = shape;
  const BytesPerSecond rate = cluster.gpu.scale_up.value() > 0 ? cluster.gpu.scale_up : cluster.gpu.pcie;
  network.ring.rate = network.inner_hop.rate = network.collective_rate = network.alltoall_rate = rate;
  network.ring.flows = network.inner_hop.flows = 0;
  return network;
}

GroupNetwork price(const Cluster& cluster, GroupShape shape, std::int64_t period) {
  const Groups groups = groups_to_route(cluster, shape, period);
  if (shape.size == 1) return alone(cluster, shape);
  GroupNetwork network;
  network.shape = shape;
  count_domains(cluster, groups, network);

  Flows flows(cluster);
  add_shifted(flows, groups, 1);
  const Rings judged = judge(flows, domain_ranks(cluster));
  network.ring = flows.named_hop(judged.worst);
  network.inner_hop = judged.worst_inner < 0 ? network.ring : flows.named_hop(static_cast<std::size_t>(judged.worst_inner));
  network.rings_leaving = judged.leaving;

  const bool has_inner = network.members_per_domain > 1 || network.domains == 1;
  double collective = has_inner ? inner_collective_rate(cluster, groups, network) : kNoLimit;
  network.collective_link = network.inner_hop.slowest;
  double nic = kNoLimit;
  if (network.domains > 1) {
    // Collectives cross between equal places of neighbouring domains; with one member per domain that is the ring itself.
    Rings crossing = judged;
    if (network.members_per_domain > 1) {
      flows.clear();
      add_shifted(flows, groups, network.members_per_domain);
      crossing = judge(flows, domain_ranks(cluster));
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
  network.alltoall_rate = BytesPerSecond(closed_form ? nic / remote : exchange_rate(cluster, groups, flows));
  return network;
}

}  // namespace

std::vector<RingHop> ring_hops(const Cluster& cluster, GroupShape shape) {
  const Groups groups = groups_to_route(cluster, shape, cluster.gpus());
  std::vector<RingHop> hops;
  if (shape.size == 1) return hops;
  Flows flows(cluster);
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
