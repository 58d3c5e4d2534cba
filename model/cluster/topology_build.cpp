#include "model/cluster/topology_build.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "model/quantity/index.h"

namespace cpfit {
namespace {

/// Grows the graph of a cluster; keeps nothing but the two lists.
class Assembly {
 public:
  Assembly(const NodeTemplate& host, const FabricRule& fabric, std::int64_t nodes)
      : host_(host), fabric_(fabric), nodes_(static_cast<std::int32_t>(nodes)) {
    const std::size_t leaves_and_spines = at(nodes_) * 2 + 64;
    vertices_.reserve(host.vertices.size() * at(nodes_) + leaves_and_spines);
    links_.reserve((host.links.size() + 4 * host.vertices.size()) * at(nodes_));
  }

  std::shared_ptr<const Topology> build() {
    for (std::int32_t node = 0; node < nodes_; ++node) add_host(node);
    if (host_.domain_nodes > 1) add_planes();
    if (nodes_ > 1 && !host_.nic_ports.empty()) add_fabric();
    return std::make_shared<const Topology>(std::move(vertices_), std::move(links_));
  }

 private:
  std::int32_t add(std::string name, VertexKind kind, std::int32_t index, std::int32_t rail = -1) {
    vertices_.push_back({std::move(name), kind, -1, index, rail});
    return static_cast<std::int32_t>(vertices_.size()) - 1;
  }

  std::int32_t first_of(std::int32_t node) const { return node * static_cast<std::int32_t>(host_.vertices.size()); }

  void add_host(std::int32_t node) {
    const std::string prefix = fmt::format("n{}.", node);
    const std::int32_t first = first_of(node);
    for (const Vertex& vertex : host_.vertices)
      vertices_.push_back({prefix + vertex.name, vertex.kind, node, vertex.index, vertex.rail});
    for (Link link : host_.links) {
      link.from += first;
      link.to += first;
      links_.push_back(link);
    }
  }

  void add_planes() {
    for (std::int32_t node = 0; node < nodes_; ++node) {
      const std::int32_t domain = node / host_.domain_nodes;
      if (node % host_.domain_nodes == 0) plane_ = add(fmt::format("domain{}.nvsw0", domain), VertexKind::kNvSwitch, domain);
      for (std::size_t v = 0; v < host_.vertices.size(); ++v) {
        if (host_.vertices[v].kind != VertexKind::kGpu) continue;
        join(links_, first_of(node) + static_cast<std::int32_t>(v), plane_, LinkClass::kNvlink, host_.domain_uplink,
             host_.domain_latency, host_.domain_lanes);
      }
    }
  }

  /// The leaf of a NIC within its unit.
  std::int32_t leaf_in_unit(const Vertex& nic) const { return fabric_.rails ? std::max(nic.rail, 0) : 0; }

  void add_fabric() {
    const std::int32_t unit_nodes = fabric_.nodes_per_unit > 0 ? fabric_.nodes_per_unit : nodes_;
    const std::int32_t pod_nodes = fabric_.nodes_per_pod > 0 ? fabric_.nodes_per_pod : nodes_;
    std::int32_t leaves_per_unit = 1;
    std::vector<BytesPerSecond> down;  // what one host brings to each leaf of its unit
    for (const Vertex& vertex : host_.vertices) {
      if (vertex.kind != VertexKind::kNic) continue;
      leaves_per_unit = std::max(leaves_per_unit, leaf_in_unit(vertex) + 1);
      down.resize(at(leaves_per_unit));
      down[at(leaf_in_unit(vertex))] += host_.nic_ports[at(vertex.index)].rate;
    }
    const std::int32_t units = (nodes_ + unit_nodes - 1) / unit_nodes;
    const std::int32_t pods = (nodes_ + pod_nodes - 1) / pod_nodes;

    const auto first_leaf = static_cast<std::int32_t>(vertices_.size());
    for (std::int32_t unit = 0; unit < units; ++unit) {
      for (std::int32_t leaf = 0; leaf < leaves_per_unit; ++leaf) {
        const std::int32_t index = unit * leaves_per_unit + leaf;
        add(fmt::format("leaf{}", index), VertexKind::kLeaf, index, fabric_.rails ? leaf : -1);
      }
    }
    for (std::int32_t node = 0; node < nodes_; ++node) {
      for (std::size_t v = 0; v < host_.vertices.size(); ++v) {
        const Vertex& nic = host_.vertices[v];
        if (nic.kind != VertexKind::kNic) continue;
        const NodeTemplate::Port& port = host_.nic_ports[at(nic.index)];
        join(links_, first_of(node) + static_cast<std::int32_t>(v),
             first_leaf + (node / unit_nodes) * leaves_per_unit + leaf_in_unit(nic), LinkClass::kNic, port.rate,
             fabric_.nic_latency, port.lanes);
      }
    }
    if (units * leaves_per_unit < 2) return;

    const auto first_spine = static_cast<std::int32_t>(vertices_.size());
    BytesPerSecond pod_up;  // all leaves of a full pod together
    for (const BytesPerSecond rate : down) pod_up += rate * (pod_nodes / fabric_.oversubscription);
    for (std::int32_t spine = 0; spine < pods * fabric_.spines; ++spine)
      add(fmt::format("spine{}", spine), VertexKind::kSpine, spine);
    for (std::int32_t unit = 0; unit < units; ++unit) {
      const std::int32_t pod = unit * unit_nodes / pod_nodes;
      for (std::int32_t leaf = 0; leaf < leaves_per_unit; ++leaf) {
        const BytesPerSecond up = down[at(leaf)] * (unit_nodes / fabric_.oversubscription / fabric_.spines);
        for (std::int32_t spine = 0; spine < fabric_.spines; ++spine) {
          join(links_, first_leaf + unit * leaves_per_unit + leaf, first_spine + pod * fabric_.spines + spine, LinkClass::kSpine,
               up, fabric_.switch_latency);
        }
      }
    }
    if (pods < 2) return;
    const std::int32_t core = add("core0", VertexKind::kSpine, pods * fabric_.spines);
    for (std::int32_t spine = 0; spine < pods * fabric_.spines; ++spine) {
      join(links_, first_spine + spine, core, LinkClass::kSpine, pod_up / (fabric_.pod_oversubscription * fabric_.spines),
           fabric_.switch_latency);
    }
  }

  const NodeTemplate& host_;
  const FabricRule& fabric_;
  std::int32_t nodes_;
  std::int32_t plane_ = -1;
  std::vector<Vertex> vertices_;
  std::vector<Link> links_;
};

}  // namespace

void join(std::vector<Link>& links, std::int32_t a, std::int32_t b, LinkClass link_class, BytesPerSecond capacity,
          Seconds latency, std::int32_t lanes) {
  links.push_back({a, b, link_class, capacity, latency, lanes});
  links.push_back({b, a, link_class, capacity, latency, lanes});
}

std::shared_ptr<const Topology> assemble(const NodeTemplate& host, const FabricRule& fabric, std::int64_t nodes) {
  return Assembly(host, fabric, nodes).build();
}

void merge_parallel_devices(std::vector<Vertex>& vertices, std::vector<Link>& links, std::vector<NodeTemplate::Port>& ports) {
  std::vector<std::set<std::int32_t>> neighbours(vertices.size());
  for (const Link& link : links) {
    neighbours[at(link.from)].insert(link.to);
    neighbours[at(link.to)].insert(link.from);
  }
  // A device is told from another by kind, host, rail and what it is joined to.
  using Likeness = std::tuple<VertexKind, std::int32_t, std::int32_t, std::set<std::int32_t>>;
  std::map<Likeness, std::int32_t> kept;
  std::vector<std::int32_t> stands_for(vertices.size());
  for (std::size_t v = 0; v < vertices.size(); ++v) {
    stands_for[v] = static_cast<std::int32_t>(v);
    const Vertex& vertex = vertices[v];
    const bool mergeable = vertex.kind == VertexKind::kNvSwitch || (vertex.kind == VertexKind::kNic && vertex.rail >= 0);
    if (!mergeable || neighbours[v].empty()) continue;
    const std::int32_t rail = vertex.kind == VertexKind::kNic ? vertex.rail : -1;
    stands_for[v] = kept.try_emplace({vertex.kind, vertex.node, rail, neighbours[v]}, stands_for[v]).first->second;
  }
  std::vector<std::int32_t> renamed(vertices.size(), -1);
  std::vector<Vertex> left;
  std::vector<NodeTemplate::Port> left_ports;
  std::map<std::pair<VertexKind, std::int32_t>, std::int32_t> counted;  // kind and host -> devices so far
  std::vector<std::int32_t> port_of(vertices.size(), -1);
  for (std::size_t v = 0; v < vertices.size(); ++v) {
    const auto keeper = at(stands_for[v]);
    const bool has_port = vertices[v].kind == VertexKind::kNic && at(vertices[v].index) < ports.size();
    if (keeper == v) {
      renamed[v] = static_cast<std::int32_t>(left.size());
      left.push_back(vertices[v]);
      if (vertices[v].kind == VertexKind::kNvSwitch || vertices[v].kind == VertexKind::kNic) {
        left.back().index = counted[{vertices[v].kind, vertices[v].node}]++;
      }
      if (has_port) {
        port_of[v] = static_cast<std::int32_t>(left_ports.size());
        left_ports.push_back(ports[at(vertices[v].index)]);
      }
    } else {
      renamed[v] = renamed[keeper];
      if (has_port) {
        left_ports[at(port_of[keeper])].rate += ports[at(vertices[v].index)].rate;
        left_ports[at(port_of[keeper])].lanes += ports[at(vertices[v].index)].lanes;
      }
    }
  }
  // Links add up only where a device was merged: two cables between the same ends stay what the person wrote.
  std::map<std::tuple<std::int32_t, std::int32_t, LinkClass>, std::size_t> known;
  std::vector<Link> joined;
  for (Link link : links) {
    const bool merged = stands_for[at(link.from)] != link.from || stands_for[at(link.to)] != link.to;
    link.from = renamed[at(link.from)];
    link.to = renamed[at(link.to)];
    const auto [where, fresh] = known.try_emplace({link.from, link.to, link.link_class}, joined.size());
    if (fresh || !merged) {
      joined.push_back(link);
    } else {
      joined[where->second].capacity += link.capacity;
      joined[where->second].lanes += link.lanes;
    }
  }
  vertices = std::move(left);
  links = std::move(joined);
  ports = std::move(left_ports);
}

}  // namespace cpfit
