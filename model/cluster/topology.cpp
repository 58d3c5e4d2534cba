#include "model/cluster/topology.h"

#include <algorithm>
#include <boost/pending/disjoint_sets.hpp>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <numeric>

#include "model/cluster/topology_graph.h"

namespace cpfit {
namespace {

bool is_fabric(VertexKind kind) { return kind == VertexKind::kLeaf || kind == VertexKind::kSpine; }

CsrGraph compress(std::size_t vertices, const std::vector<Link>& links) {
  std::vector<std::pair<std::size_t, std::size_t>> ends(links.size());
  std::vector<LinkOfEdge> properties(links.size());
  for (std::size_t i = 0; i < links.size(); ++i) {
    ends[i] = {static_cast<std::size_t>(links[i].from), static_cast<std::size_t>(links[i].to)};
    properties[i].link = static_cast<std::int32_t>(i);
  }
  return {boost::edges_are_unsorted_multi_pass, ends.begin(), ends.end(), properties.begin(), vertices};
}

/// Out links of every vertex that `keep` accepts, sorted by far end, widest first among parallel ones.
template <class Keep>
Rows links_where(const CsrGraph& csr, const std::vector<Link>& links, Keep keep) {
  Rows rows;
  const std::size_t count = boost::num_vertices(csr);
  for (std::size_t v = 0; v < count; ++v) {
    const auto [first, last] = boost::out_edges(v, csr);
    const std::size_t start = rows.values.size();
    for (auto edge = first; edge != last; ++edge) {
      if (keep(links[static_cast<std::size_t>(csr[*edge].link)])) rows.values.push_back(csr[*edge].link);
    }
    std::sort(rows.values.begin() + static_cast<std::ptrdiff_t>(start), rows.values.end(), [&](std::int32_t a, std::int32_t b) {
      const Link &left = links[static_cast<std::size_t>(a)], &right = links[static_cast<std::size_t>(b)];
      if (left.to != right.to) return left.to < right.to;
      if (left.capacity != right.capacity) return left.capacity > right.capacity;
      return a < b;
    });
    rows.close_row();
  }
  for (const std::int32_t link : rows.values) rows.keys.push_back(links[static_cast<std::size_t>(link)].to);
  return rows;
}

Rows links_into_nics(const std::vector<Vertex>& vertices, const std::vector<Link>& links) {
  std::vector<std::vector<std::int32_t>> into(vertices.size());
  for (std::size_t i = 0; i < links.size(); ++i) {
    const auto from = static_cast<std::size_t>(links[i].from), to = static_cast<std::size_t>(links[i].to);
    if (vertices[to].kind == VertexKind::kNic && is_fabric(vertices[from].kind)) into[to].push_back(static_cast<std::int32_t>(i));
  }
  Rows rows;
  for (const auto& of_vertex : into) {
    rows.values.insert(rows.values.end(), of_vertex.begin(), of_vertex.end());
    rows.close_row();
  }
  return rows;
}

std::vector<std::int32_t> scale_up_components(std::size_t vertices, const std::vector<Link>& links) {
  std::vector<std::int32_t> rank(vertices), parent(vertices);
  boost::disjoint_sets<std::int32_t*, std::int32_t*> sets(rank.data(), parent.data());
  for (std::size_t v = 0; v < vertices; ++v) sets.make_set(static_cast<std::int32_t>(v));
  for (const Link& link : links) {
    if (is_scale_up(link.link_class)) sets.union_set(link.from, link.to);
  }
  std::vector<std::int32_t> component(vertices);
  for (std::size_t v = 0; v < vertices; ++v) component[v] = sets.find_set(static_cast<std::int32_t>(v));
  return component;
}

void index_hosts(Topology::Graph& graph, const std::vector<Vertex>& vertices) {
  std::int32_t hosts = 0;
  for (const Vertex& vertex : vertices) hosts = std::max(hosts, vertex.node + 1);
  std::vector<std::vector<std::int32_t>> of(static_cast<std::size_t>(hosts));
  graph.host_position.assign(vertices.size(), -1);
  for (std::size_t v = 0; v < vertices.size(); ++v) {
    if (vertices[v].node < 0) continue;
    auto& members = of[static_cast<std::size_t>(vertices[v].node)];
    graph.host_position[v] = static_cast<std::int32_t>(members.size());
    members.push_back(static_cast<std::int32_t>(v));
  }
  for (const auto& members : of) {
    graph.host_vertices.values.insert(graph.host_vertices.values.end(), members.begin(), members.end());
    graph.host_vertices.close_row();
  }
}

/// Numbers the switches, groups the leaves into pods and computes, per pod, the next links towards it from every switch.
void index_fabric(Topology::Graph& graph, const std::vector<Vertex>& vertices, const std::vector<Link>& links) {
  const auto at = [&](std::int32_t link) -> const Link& { return links[static_cast<std::size_t>(link)]; };
  graph.fabric_index.assign(vertices.size(), -1);
  graph.pod.assign(vertices.size(), -1);
  for (std::size_t v = 0; v < vertices.size(); ++v) {
    if (!is_fabric(vertices[v].kind)) continue;
    graph.fabric_index[v] = static_cast<std::int32_t>(graph.fabric_vertex.size());
    graph.fabric_vertex.push_back(static_cast<std::int32_t>(v));
  }
  const std::size_t switches = graph.fabric_vertex.size();
  std::vector<std::vector<std::int32_t>> into(switches);  // links from other switches
  for (std::size_t i = 0; i < links.size(); ++i) {
    const std::int32_t to = graph.fabric_index[static_cast<std::size_t>(links[i].to)];
    if (to >= 0 && graph.fabric_index[static_cast<std::size_t>(links[i].from)] >= 0) {
      into[static_cast<std::size_t>(to)].push_back(static_cast<std::int32_t>(i));
    }
  }

  using Above = std::vector<std::pair<std::int32_t, double>>;  // switch above, capacity down to the leaf
  std::map<Above, std::int32_t> pods;
  std::vector<Above> above_of_pod;
  for (std::size_t f = 0; f < switches; ++f) {
    const auto v = static_cast<std::size_t>(graph.fabric_vertex[f]);
    if (vertices[v].kind != VertexKind::kLeaf) continue;
    Above above;
    for (std::int32_t link : into[f]) above.emplace_back(at(link).from, at(link).capacity.value());
    std::sort(above.begin(), above.end());
    const auto [where, fresh] = pods.try_emplace(above, static_cast<std::int32_t>(pods.size()));
    if (fresh) above_of_pod.push_back(above);
    graph.pod[v] = where->second;
  }

  graph.distance.reserve(above_of_pod.size() * switches);
  for (const Above& above : above_of_pod) {
    std::vector<std::int32_t> distance(switches, kFar), queue;
    std::vector<double> width(switches, 0.0);
    for (const auto& [vertex, capacity] : above) {
      const auto f = static_cast<std::size_t>(graph.fabric_index[static_cast<std::size_t>(vertex)]);
      if (distance[f] == kFar) queue.push_back(static_cast<std::int32_t>(f));
      distance[f] = 0;
      width[f] = std::max(width[f], capacity);
    }
    for (std::size_t head = 0; head < queue.size(); ++head) {  // backwards: fewest hops, then the widest way
      const auto f = static_cast<std::size_t>(queue[head]);
      for (std::int32_t link : into[f]) {
        const auto from = static_cast<std::size_t>(graph.fabric_index[static_cast<std::size_t>(at(link).from)]);
        const double through = std::min(width[f], at(link).capacity.value());
        if (distance[from] == kFar) {
          distance[from] = distance[f] + 1;
          queue.push_back(static_cast<std::int32_t>(from));
        }
        if (distance[from] == distance[f] + 1) width[from] = std::max(width[from], through);
      }
    }
    for (std::size_t f = 0; f < switches; ++f) {
      if (distance[f] != kFar && distance[f] > 0) {
        for (std::int32_t link : graph.fabric_links.row(static_cast<std::size_t>(graph.fabric_vertex[f]))) {
          const auto to = static_cast<std::size_t>(graph.fabric_index[static_cast<std::size_t>(at(link).to)]);
          if (distance[to] == distance[f] - 1 && std::min(width[to], at(link).capacity.value()) == width[f]) {
            graph.next.values.push_back(link);
          }
        }
      }
      graph.next.close_row();
    }
    graph.distance.insert(graph.distance.end(), distance.begin(), distance.end());
  }
}

/// What NCCL takes a PCIe link for, of its raw rate: 24 GB/s of 31.5 for 16 lanes of generation 4, and alike for the others
/// (ncclTopoAddPci in src/graph/topo.cc).
constexpr double kPcieOfRaw = 24.0 / 31.5;

/// The NICs that a pair's channels are spread over: the GPU's own, then those that are as near, until they match its PCIe link.
std::vector<std::int32_t> spread_over(const Topology::Graph& graph, const std::vector<Link>& links,
                                      const std::vector<std::int32_t>& near, std::int32_t own, double pcie) {
  std::vector<std::int32_t> used;
  const auto first = static_cast<std::size_t>(std::find(near.begin(), near.end(), own) - near.begin());
  double rate = 0;
  for (std::size_t i = 0; i < near.size() && (used.empty() || rate < kPcieOfRaw * pcie); ++i) {
    const std::int32_t nic = near[(first + i) % near.size()];
    double out = 0;
    const auto [begin, end] = boost::out_edges(static_cast<std::size_t>(nic), graph.csr);
    for (auto edge = begin; edge != end; ++edge) {
      const Link& link = links[static_cast<std::size_t>(graph.csr[*edge].link)];
      if (link.link_class == LinkClass::kNic) out += link.capacity.value();
    }
    used.push_back(nic);
    rate += out > 0 ? out : pcie;  // no fabric: nothing to spread for
  }
  return used;
}

/// The nearest NIC of every GPU and the ways there and back.
void assign_nics(Topology::Graph& graph, const Topology& topology, const std::vector<std::int32_t>& gpus) {
  const auto& vertices = topology.vertices();
  const auto& links = topology.links();
  std::map<std::int32_t, std::int32_t> served;
  for (std::int32_t gpu : gpus) {
    const std::int32_t node = vertices[static_cast<std::size_t>(gpu)].node;
    std::int32_t best = -1;
    std::vector<std::int32_t> best_path;
    double best_width = 0;
    std::vector<std::int32_t> near;
    if (node >= 0) {
      for (std::int32_t v : graph.host_vertices.row(static_cast<std::size_t>(node))) {
        if (vertices[static_cast<std::size_t>(v)].kind != VertexKind::kNic) continue;
        std::vector<std::int32_t> path = topology.host_path(gpu, v);
        if (path.empty()) continue;
        double width = std::numeric_limits<double>::infinity();
        for (std::int32_t link : path) width = std::min(width, links[static_cast<std::size_t>(link)].capacity.value());
        const bool nearer =
            best < 0 || path.size() < best_path.size() ||
            (path.size() == best_path.size() && (width > best_width || (width == best_width && served[v] < served[best])));
        if (best < 0 || path.size() < best_path.size() || (path.size() == best_path.size() && width > best_width)) near.clear();
        if (near.empty() || (path.size() == best_path.size() && width == best_width)) near.push_back(v);
        if (nearer) {
          best = v;
          best_path = std::move(path);
          best_width = width;
        }
      }
    }
    graph.nic.push_back(best);
    if (best >= 0) {
      ++served[best];
      const std::vector<std::int32_t> back = topology.host_path(best, gpu);
      graph.to_nic.values.insert(graph.to_nic.values.end(), best_path.begin(), best_path.end());
      graph.from_nic.values.insert(graph.from_nic.values.end(), back.begin(), back.end());
      const double pcie = links[static_cast<std::size_t>(best_path.front())].capacity.value();
      const std::vector<std::int32_t> used = spread_over(graph, links, near, best, pcie);
      graph.near_nic.values.insert(graph.near_nic.values.end(), used.begin(), used.end());
    }
    graph.near_nic.close_row();
    graph.to_nic.close_row();
    graph.from_nic.close_row();
  }
}

/// The NICs of GPUs ranked otherwise than they were assigned in.
void rank_nics(Topology::Graph& graph, const std::vector<std::int32_t>& assigned, const std::vector<std::int32_t>& ranked) {
  std::vector<std::size_t> place_of(graph.host_position.size());
  for (std::size_t i = 0; i < assigned.size(); ++i) place_of[static_cast<std::size_t>(assigned[i])] = i;
  std::vector<std::int32_t> nic;
  Rows to_nic, from_nic, near_nic;
  for (const std::int32_t gpu : ranked) {
    const std::size_t place = place_of[static_cast<std::size_t>(gpu)];
    nic.push_back(graph.nic[place]);
    for (const auto& [rows, out] :
         {std::pair{&graph.to_nic, &to_nic}, std::pair{&graph.from_nic, &from_nic}, std::pair{&graph.near_nic, &near_nic}}) {
      const auto row = rows->row(place);
      out->values.insert(out->values.end(), row.begin(), row.end());
      out->close_row();
    }
  }
  graph.nic = std::move(nic);
  graph.to_nic = std::move(to_nic);
  graph.from_nic = std::move(from_nic);
  graph.near_nic = std::move(near_nic);
}

/// Do the ranks walk through every host in the same order?
bool ranked_alike(const Topology::Graph& graph, const std::vector<Vertex>& vertices, const std::vector<std::int32_t>& ranked) {
  std::size_t of_one = 0;  // GPUs of the first host
  for (const std::int32_t gpu : ranked)
    of_one += vertices[static_cast<std::size_t>(gpu)].node == vertices[static_cast<std::size_t>(ranked[0])].node ? 1 : 0;
  for (std::size_t rank = of_one; rank < ranked.size(); ++rank) {
    if (graph.host_position[static_cast<std::size_t>(ranked[rank])] !=
        graph.host_position[static_cast<std::size_t>(ranked[rank % of_one])])
      return false;
  }
  return true;
}

/// Do all hosts and all leaves look alike? Each is described by its links in order, ends named by kind and position.
bool all_alike(const Topology::Graph& graph, const std::vector<Vertex>& vertices, const std::vector<Link>& links) {
  const std::size_t hosts = graph.host_vertices.begin.size() - 1;
  if (hosts == 0) return false;
  const auto mix = [](std::uint64_t hash, std::uint64_t value) { return (hash ^ value) * 1099511628211ULL; };  // FNV-1a
  std::vector<std::uint64_t> of(vertices.size(),
                                14695981039346656037ULL);  // per host: at its first vertex; per leaf: at the leaf
  const auto add = [&](std::int32_t owner, const Link& link, std::int32_t near, std::int32_t far) {
    const Vertex& end = vertices[static_cast<std::size_t>(far)];
    const std::int32_t position = graph.host_position[static_cast<std::size_t>(far)];
    std::uint64_t hash = of[static_cast<std::size_t>(owner)];
    hash = mix(hash, static_cast<std::uint64_t>(graph.host_position[static_cast<std::size_t>(near)]) + 1);
    hash = mix(hash, static_cast<std::uint64_t>(end.kind));
    hash = mix(hash, static_cast<std::uint64_t>(position) + 1);
    hash = mix(hash, static_cast<std::uint64_t>(link.link_class));
    hash = mix(hash, static_cast<std::uint64_t>(link.capacity.value()));
    of[static_cast<std::size_t>(owner)] = hash;
  };
  for (const Link& link : links) {
    const Vertex &from = vertices[static_cast<std::size_t>(link.from)], &to = vertices[static_cast<std::size_t>(link.to)];
    if (from.node >= 0) add(graph.host_vertices.row(static_cast<std::size_t>(from.node))[0], link, link.from, link.to);
    if (to.node >= 0 && to.node != from.node)
      add(graph.host_vertices.row(static_cast<std::size_t>(to.node))[0], link, link.to, link.from);
    if (from.kind == VertexKind::kLeaf && is_fabric(to.kind)) add(link.from, link, link.from, link.to);
    if (to.kind == VertexKind::kLeaf && is_fabric(from.kind)) add(link.to, link, link.to, link.from);
  }
  const std::uint64_t first_host = of[static_cast<std::size_t>(graph.host_vertices.row(0)[0])];
  const std::size_t host_size = graph.host_vertices.row(0).size();
  for (std::size_t host = 1; host < hosts; ++host) {
    const auto row = graph.host_vertices.row(host);
    if (row.size() != host_size || of[static_cast<std::size_t>(row[0])] != first_host) return false;
  }
  std::int32_t first_leaf = -1;
  for (std::size_t v = 0; v < vertices.size(); ++v) {
    if (vertices[v].kind != VertexKind::kLeaf) continue;
    if (first_leaf < 0) first_leaf = static_cast<std::int32_t>(v);
    if (of[v] != of[static_cast<std::size_t>(first_leaf)]) return false;
  }
  return true;
}

}  // namespace

Topology::Topology(std::vector<Vertex> vertices, std::vector<Link> links, std::vector<std::int32_t> ranked)
    : vertices_(std::move(vertices)), links_(std::move(links)), graph_(std::make_unique<Graph>()) {
  const auto count = static_cast<std::int32_t>(vertices_.size());
  for (std::size_t i = 0; i < links_.size(); ++i) {
    const Link& link = links_[i];
    if (link.from < 0 || link.from >= count || link.to < 0 || link.to >= count) {
      std::fprintf(stderr, "cpfit: internal error: link %zu joins vertices %d and %d of %d\n", i, link.from, link.to, count);
      std::abort();
    }
  }
  for (std::int32_t v = 0; v < count; ++v) {
    if (vertices_[static_cast<std::size_t>(v)].kind == VertexKind::kGpu) gpus_.push_back(v);
  }
  std::vector<std::int32_t> each = ranked;
  std::sort(each.begin(), each.end());
  if (!ranked.empty() && each != gpus_) {
    std::fprintf(stderr, "cpfit: internal error: %zu GPUs are ranked, not each of %zu once\n", ranked.size(), gpus_.size());
    std::abort();
  }
  Graph& graph = *graph_;
  graph.csr = compress(vertices_.size(), links_);
  graph.scale_up = links_where(graph.csr, links_, [](const Link& link) { return is_scale_up(link.link_class); });
  graph.component = scale_up_components(vertices_.size(), links_);
  index_hosts(graph, vertices_);
  graph.fabric_links = links_where(
      graph.csr, links_, [&](const Link& link) { return is_fabric(vertices_[static_cast<std::size_t>(link.to)].kind); });
  graph.from_fabric = links_into_nics(vertices_, links_);
  index_fabric(graph, vertices_, links_);
  assign_nics(graph, *this, gpus_);
  graph.nodes_alike = all_alike(graph, vertices_, links_);
  if (ranked.empty() || ranked == gpus_) return;
  rank_nics(graph, gpus_, ranked);
  gpus_ = std::move(ranked);
  graph.nodes_alike = graph.nodes_alike && ranked_alike(graph, vertices_, gpus_);
}

Topology::~Topology() = default;

std::int32_t Topology::nic_of(std::int64_t a) const { return graph_->nic[static_cast<std::size_t>(a)]; }

std::int32_t Topology::leaf_of(std::int64_t a) const {
  const std::int32_t nic = nic_of(a);
  if (nic < 0) return -1;
  const auto row = graph_->fabric_links.row(static_cast<std::size_t>(nic));
  return row.empty() ? -1 : links_[static_cast<std::size_t>(row[0])].to;
}

std::int32_t Topology::pod_of(std::int64_t a) const {
  const std::int32_t leaf = leaf_of(a);
  return leaf < 0 ? -1 : graph_->pod[static_cast<std::size_t>(leaf)];
}

std::int32_t Topology::scale_up_component(std::int64_t a) const {
  return graph_->component[static_cast<std::size_t>(gpus_[static_cast<std::size_t>(a)])];
}

bool Topology::nodes_alike() const { return graph_->nodes_alike; }

std::string_view name_of(VertexKind kind) {
  static constexpr std::string_view kNames[] = {"gpu", "nvswitch", "pcie_switch", "cpu", "nic", "leaf", "spine"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view name_of(LinkClass link) {
  static constexpr std::string_view kNames[] = {"nvlink", "xgmi", "pcie", "socket", "nic", "spine", "local"};
  return kNames[static_cast<std::size_t>(link)];
}

}  // namespace cpfit
