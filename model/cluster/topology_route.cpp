// Routes by the written rule of topology.h, leg by leg.
#include <algorithm>
#include <limits>

#include "model/cluster/topology.h"
#include "model/cluster/topology_graph.h"

namespace cpfit {
namespace {

/// Fewest hops, then largest bottleneck, over the links `edges_of(v)` gives and relays that `may_relay` accepts. `position`
/// numbers the vertices of the searched part. Empty when there is no way.
template <class EdgesOf, class MayRelay, class Position>
std::vector<std::int32_t> widest_shortest(std::int32_t from, std::int32_t to, std::size_t size, const std::vector<Link>& links,
                                          EdgesOf edges_of, MayRelay may_relay, Position position) {
  struct Mark {
    std::int32_t hops = kFar;
    double width = 0;
    std::int32_t link = -1;
  };
  std::vector<Mark> marks(size);
  std::vector<std::int32_t> queue{from};
  const auto mark = [&](std::int32_t v) -> Mark& { return marks[static_cast<std::size_t>(position(v))]; };
  mark(from) = {0, std::numeric_limits<double>::infinity(), -1};
  for (std::size_t head = 0; head < queue.size(); ++head) {
    const std::int32_t v = queue[head];
    const Mark here = mark(v);
    if (here.hops >= mark(to).hops) break;
    edges_of(v, [&](std::int32_t index) {
      const Link& link = links[static_cast<std::size_t>(index)];
      if (link.to != to && !may_relay(link.to)) return;
      Mark& there = mark(link.to);
      const double width = std::min(here.width, link.capacity.value());
      if (there.hops == kFar) queue.push_back(link.to);
      if (there.hops > here.hops + 1 || (there.hops == here.hops + 1 && width > there.width))
        there = {here.hops + 1, width, index};
    });
  }
  std::vector<std::int32_t> path;
  for (std::int32_t v = to; mark(v).link >= 0; v = links[static_cast<std::size_t>(mark(v).link)].from)
    path.push_back(mark(v).link);
  std::reverse(path.begin(), path.end());
  return path;
}

/// Rule 1. Appends and returns true when scale-up links join the two GPUs.
bool by_scale_up(const Topology::Graph& graph, const std::vector<Vertex>& vertices, const std::vector<Link>& links,
                 std::int32_t from, std::int32_t to, std::vector<std::int32_t>& out) {
  if (graph.component[static_cast<std::size_t>(from)] != graph.component[static_cast<std::size_t>(to)]) return false;
  const auto first_links = graph.scale_up.row(static_cast<std::size_t>(from));
  if (const std::int32_t direct = graph.scale_up.link_to(from, to); direct >= 0) {
    out.push_back(direct);
    return true;
  }
  std::int32_t best_first = -1, best_second = -1;
  double best_width = -1;
  for (std::int32_t first : first_links) {
    const Link& link = links[static_cast<std::size_t>(first)];
    const std::int32_t second = graph.scale_up.link_to(link.to, to);
    if (second < 0) continue;
    const double width = std::min(link.capacity.value(), links[static_cast<std::size_t>(second)].capacity.value());
    if (width > best_width) {
      best_first = first;
      best_second = second;
      best_width = width;
    }
  }
  if (best_first >= 0) {
    out.push_back(best_first);
    out.push_back(best_second);
    return true;
  }
  // Several stages of NVSwitches (DGX-2): rare and small, searched when asked.
  const std::vector<std::int32_t> path = widest_shortest(
      from, to, vertices.size(), links,
      [&](std::int32_t v, auto&& visit) {
        for (std::int32_t link : graph.scale_up.row(static_cast<std::size_t>(v))) visit(link);
      },
      [&](std::int32_t v) { return vertices[static_cast<std::size_t>(v)].kind == VertexKind::kNvSwitch; },
      [](std::int32_t v) { return v; });
  out.insert(out.end(), path.begin(), path.end());
  return !path.empty();
}

/// Switch hops from leaf to leaf; kFar when there is no way.
std::int32_t fabric_hops(const Topology::Graph& graph, std::int32_t from, std::int32_t to) {
  if (from == to) return 0;
  if (graph.fabric_links.link_to(from, to) >= 0) return 1;
  const std::size_t row = static_cast<std::size_t>(graph.pod[static_cast<std::size_t>(to)]) * graph.fabric_vertex.size() +
                          static_cast<std::size_t>(graph.fabric_index[static_cast<std::size_t>(from)]);
  return graph.distance[row] == kFar ? kFar : graph.distance[row] + 1;
}

void through_fabric(const Topology::Graph& graph, const std::vector<Link>& links, std::int32_t from, std::int32_t to,
                    std::int32_t rail, std::vector<std::int32_t>& out) {
  const std::size_t row = static_cast<std::size_t>(graph.pod[static_cast<std::size_t>(to)]) * graph.fabric_vertex.size();
  for (std::int32_t v = from; v != to;) {
    std::int32_t link = graph.fabric_links.link_to(v, to);
    if (link < 0) {
      const auto choices = graph.next.row(row + static_cast<std::size_t>(graph.fabric_index[static_cast<std::size_t>(v)]));
      link = choices[static_cast<std::size_t>(std::max(rail, 0)) % choices.size()];
    }
    out.push_back(link);
    v = links[static_cast<std::size_t>(link)].to;
  }
}

/// Rule 3 from NIC to NIC. False when the fabric does not join them.
bool by_network(const Topology::Graph& graph, const std::vector<Vertex>& vertices, const std::vector<Link>& links,
                std::int32_t from, std::int32_t to, std::vector<std::int32_t>& out) {
  const auto [first, last] = boost::out_edges(static_cast<std::size_t>(from), graph.csr);
  for (auto edge = first; edge != last; ++edge) {  // back to back
    if (static_cast<std::int32_t>(boost::target(*edge, graph.csr)) == to) {
      out.push_back(graph.csr[*edge].link);
      return true;
    }
  }
  std::int32_t best_up = -1, best_down = -1, best_hops = kFar;
  const std::int32_t rail = vertices[static_cast<std::size_t>(from)].rail;
  for (std::int32_t up : graph.fabric_links.row(static_cast<std::size_t>(from))) {
    for (std::int32_t down : graph.from_fabric.row(static_cast<std::size_t>(to))) {
      const std::int32_t source = links[static_cast<std::size_t>(up)].to, target = links[static_cast<std::size_t>(down)].from;
      if (const std::int32_t hops = fabric_hops(graph, source, target); hops < best_hops) {
        best_hops = hops;
        best_up = up;
        best_down = down;
      }
    }
  }
  if (best_up < 0) return false;
  out.push_back(best_up);
  through_fabric(graph, links, links[static_cast<std::size_t>(best_up)].to, links[static_cast<std::size_t>(best_down)].from, rail,
                 out);
  out.push_back(best_down);
  return true;
}

}  // namespace

std::vector<std::int32_t> Topology::host_path(std::int32_t from, std::int32_t to) const {
  const std::int32_t node = vertices_[static_cast<std::size_t>(from)].node;
  if (node < 0 || node != vertices_[static_cast<std::size_t>(to)].node || from == to) return {};
  return widest_shortest(
      from, to, graph_->host_vertices.row(static_cast<std::size_t>(node)).size(), links_,
      [&](std::int32_t v, auto&& visit) {
        const auto [first, last] = boost::out_edges(static_cast<std::size_t>(v), graph_->csr);
        for (auto edge = first; edge != last; ++edge) {
          const std::int32_t link = graph_->csr[*edge].link;
          if (!is_scale_up(links_[static_cast<std::size_t>(link)].link_class)) visit(link);
        }
      },
      [&](std::int32_t v) {
        const Vertex& vertex = vertices_[static_cast<std::size_t>(v)];
        return vertex.node == node && (vertex.kind == VertexKind::kPcieSwitch || vertex.kind == VertexKind::kCpu);
      },
      [&](std::int32_t v) { return graph_->host_position[static_cast<std::size_t>(v)]; });
}

void Topology::route_into(std::int64_t a, std::int64_t b, std::vector<std::int32_t>& out) const {
  out.clear();
  if (a == b) return;
  const std::int32_t from = gpus_[static_cast<std::size_t>(a)], to = gpus_[static_cast<std::size_t>(b)];
  if (by_scale_up(*graph_, vertices_, links_, from, to, out)) return;
  if (vertices_[static_cast<std::size_t>(from)].node == vertices_[static_cast<std::size_t>(to)].node) {
    const std::vector<std::int32_t> path = host_path(from, to);
    out.assign(path.begin(), path.end());
    if (!out.empty()) return;
  }
  const std::int32_t source = nic_of(a), target = nic_of(b);
  if (source < 0 || target < 0 || source == target) return;
  const auto up = graph_->to_nic.row(static_cast<std::size_t>(a));
  out.assign(up.begin(), up.end());
  if (!by_network(*graph_, vertices_, links_, source, target, out)) {
    out.clear();
    return;
  }
  const auto down = graph_->from_nic.row(static_cast<std::size_t>(b));
  out.insert(out.end(), down.begin(), down.end());
}

void Topology::pair_routes_into(std::int64_t a, std::int64_t b, std::vector<std::int32_t>& links,
                                std::vector<std::size_t>& ends) const {
  ends.clear();
  route_into(a, b, links);
  if (links.empty()) return;
  ends.push_back(links.size());
  const std::int32_t from = gpus_[static_cast<std::size_t>(a)], to = gpus_[static_cast<std::size_t>(b)];
  const auto near_a = graph_->near_nic.row(static_cast<std::size_t>(a)),
             near_b = graph_->near_nic.row(static_cast<std::size_t>(b));
  const std::size_t ways = std::min(near_a.size(), near_b.size());
  const bool leaves = std::ranges::any_of(links, [&](std::int32_t link) {
    return vertices_[static_cast<std::size_t>(links_[static_cast<std::size_t>(link)].to)].kind == VertexKind::kNic;
  });
  for (std::size_t way = 1; leaves && way < ways; ++way) {
    const std::vector<std::int32_t> up = host_path(from, near_a[way]), down = host_path(near_b[way], to);
    std::vector<std::int32_t> across;
    if (!by_network(*graph_, vertices_, links_, near_a[way], near_b[way], across)) continue;
    links.insert(links.end(), up.begin(), up.end());
    links.insert(links.end(), across.begin(), across.end());
    links.insert(links.end(), down.begin(), down.end());
    ends.push_back(links.size());
  }
}

std::vector<std::int32_t> Topology::route(std::int64_t a, std::int64_t b) const {
  std::vector<std::int32_t> links;
  route_into(a, b, links);
  return links;
}

bool Topology::reachable(std::int64_t a, std::int64_t b) const { return a == b || !route(a, b).empty(); }

}  // namespace cpfit
