#include "model/cluster/concurrent_flows.h"

#include <algorithm>
#include <map>

#include "model/cluster/mesh_rings.h"
#include "model/quantity/index.h"

namespace cpfit {
namespace {

/// Slower first; of equals the longer latency.
bool worse(const HopNetwork& a, const HopNetwork& b) { return a.rate < b.rate || (a.rate == b.rate && a.latency > b.latency); }

}  // namespace

void ConcurrentFlows::clear() {
  for (const std::int32_t link : touched_) load_[at(link)] = 0.0;
  touched_.clear();
  links_.clear();
  flows_.clear();
}

void ConcurrentFlows::add(std::int64_t from, std::int64_t to, double weight) {
  load_only(from, to, weight);
  links_.insert(links_.end(), buffer_.begin(), buffer_.end());
  flows_.push_back({from, to, static_cast<std::int64_t>(links_.size()), static_cast<std::int64_t>(links_.size()), 1});
}

void ConcurrentFlows::add_pair(std::int64_t from, std::int64_t to, double weight) {
  topology_.pair_routes_into(from, to, buffer_, ends_);
  const auto begin = static_cast<std::int64_t>(links_.size());
  const auto ways = static_cast<std::int32_t>(std::max<std::size_t>(1, ends_.size()));
  for (const std::int32_t link : buffer_) load(link, weight / ways);
  links_.insert(links_.end(), buffer_.begin(), buffer_.end());
  const std::int64_t first = ends_.empty() ? 0 : static_cast<std::int64_t>(ends_.front());
  flows_.push_back({from, to, static_cast<std::int64_t>(links_.size()), begin + first, ways});
}

void ConcurrentFlows::load(std::int32_t link, double weight) {
  if (load_[at(link)] == 0.0) touched_.push_back(link);
  load_[at(link)] += weight;
}

void ConcurrentFlows::load_only(std::int64_t from, std::int64_t to, double weight) {
  topology_.route_into(from, to, buffer_);
  for (const std::int32_t link : buffer_) load(link, weight);
}

std::span<const std::int32_t> ConcurrentFlows::route(std::size_t flow) const {
  const std::int64_t begin = flow == 0 ? 0 : flows_[flow - 1].end;
  return std::span(links_).subspan(at(begin), at(flows_[flow].end - begin));
}

HopNetwork ConcurrentFlows::hop(std::size_t flow) const {
  std::int32_t unused = -1;
  return hop(flow, unused);
}

HopNetwork ConcurrentFlows::named_hop(std::size_t flow) const {
  std::int32_t slowest = -1;
  HopNetwork result = hop(flow, slowest);
  if (slowest >= 0) {
    const Link& link = topology_.links()[at(slowest)];
    result.link = topology_.vertices()[at(link.from)].name + " -> " + topology_.vertices()[at(link.to)].name;
  }
  return result;
}

double ConcurrentFlows::largest_scale() const {
  double scale = kNoRateLimit;
  for (const std::int32_t link : touched_)
    scale = std::min(scale, topology_.links()[at(link)].capacity.value() / load_[at(link)]);
  return scale;
}

HopNetwork ConcurrentFlows::hop(std::size_t flow, std::int32_t& slowest_link) const {
  HopNetwork hop;
  double slowest = kNoRateLimit;
  const std::span<const std::int32_t> links = route(flow);
  const std::int64_t begin = flows_[flow].end - static_cast<std::int64_t>(links.size());
  for (std::size_t i = 0; i < links.size(); ++i) {
    const std::int32_t index = links[i];
    const Link& link = topology_.links()[at(index)];
    if (begin + static_cast<std::int64_t>(i) < flows_[flow].first_end) hop.latency += link.latency;  // the ways are alike
    const double share = link.capacity.value() / load_[at(index)];
    if (link.link_class == LinkClass::kNic) {
      hop.crosses_node = true;
      hop.nic_ports = link.lanes * flows_[flow].ways;
    }
    if (share < slowest) {
      slowest = share;
      hop.slowest = link.link_class;
      hop.flows = static_cast<std::int32_t>(load_[at(index)] + 0.5);
      slowest_link = index;
    }
  }
  hop.rate = BytesPerSecond(slowest == kNoRateLimit ? 0.0 : slowest);
  return hop;
}

double exchange_through_cpus(const Topology& topology, std::int64_t member, std::span<const std::int64_t> peers) {
  std::vector<std::int32_t> route;
  std::int64_t through = 0;
  for (const std::int64_t peer : peers) {
    topology.route_into(member, peer, route);
    bool cpu = false, nic = false;
    for (const std::int32_t index : route) {
      const VertexKind kind = topology.vertices()[at(topology.links()[at(index)].to)].kind;
      cpu = cpu || kind == VertexKind::kCpu;
      nic = nic || kind == VertexKind::kNic;
    }
    if (cpu && !nic) ++through;
  }
  if (through < 2) return kNoRateLimit;  // a single peer has the link for itself
  const double share = static_cast<double>(through) / static_cast<double>(peers.size());
  return kPeerThroughCpu / static_cast<double>(through) / share;
}

RingJudgement judge_rings(const ConcurrentFlows& flows, std::int64_t domain) {
  RingJudgement rings;
  HopNetwork worst, worst_inner;
  std::int64_t last = 0;  // source of the highest number
  for (std::size_t flow = 0; flow < flows.size(); ++flow) last = std::max(last, flows.source(flow));
  std::vector<std::int32_t> leaving(at(last / domain) + 1);
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

double scale_up_rate(const Topology& topology, std::span<const std::int64_t> members) {
  std::vector<std::int32_t> route;
  std::vector<std::size_t> joined{0};  // members reached so far, by direct links
  std::vector<bool> reached(members.size(), false);
  reached[0] = true;
  double slowest = kNoRateLimit;
  std::vector<double> mesh(members.size() * members.size(), 0.0);  // of links from GPU to GPU
  bool switched = false;
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
      double width = kNoRateLimit;
      for (const std::int32_t index : route) width = std::min(width, topology.links()[at(index)].capacity.value());
      out[route.front()] = std::max(out[route.front()], width);
      switched = switched || route.size() > 1;
      mesh[a * members.size() + b] = width;
      if (!reached[b]) {
        reached[b] = true;
        joined.push_back(b);
      }
    }
    double sum = 0;
    for (const auto& [link, width] : out) sum += width;
    slowest = std::min(slowest, sum);
  }
  if (switched || members.size() < 3 || members.size() > kMostMeshMembers) return slowest;
  return std::min(slowest, mesh_ring_rate(mesh, members.size()));
}

}  // namespace cpfit
