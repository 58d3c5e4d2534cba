// What a Topology keeps for routing, private to topology*.cpp: the graph in compressed rows, the part of it that matters for
// each leg of a route, and what can be computed once: NIC of each GPU, hops between the switches of the fabric.
#pragma once

#include <algorithm>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "model/cluster/topology.h"

namespace cpfit {

struct LinkOfEdge {
  std::int32_t link = -1;
};
using CsrGraph = boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, LinkOfEdge>;

/// Rows of different length in one array. `keys`, where used, runs beside `values`: searches stay in one place of memory.
struct Rows {
  std::vector<std::int32_t> begin{0};
  std::vector<std::int32_t> values;
  std::vector<std::int32_t> keys;  // far end of each link
  void close_row() { begin.push_back(static_cast<std::int32_t>(values.size())); }
  [[nodiscard]] std::span<const std::int32_t> row(std::size_t index) const {
    return std::span(values).subspan(static_cast<std::size_t>(begin[index]),
                                     static_cast<std::size_t>(begin[index + 1] - begin[index]));
  }
  /// The first link of a row sorted by key that ends at `to`; -1 when none does.
  [[nodiscard]] std::int32_t link_to(std::int32_t index, std::int32_t to) const {
    const auto first = keys.begin() + begin[static_cast<std::size_t>(index)],
               last = keys.begin() + begin[static_cast<std::size_t>(index) + 1];
    const auto where = std::lower_bound(first, last, to);
    return where == last || *where != to ? -1 : values[static_cast<std::size_t>(where - keys.begin())];
  }
};

inline constexpr std::int32_t kFar = std::numeric_limits<std::int32_t>::max();

struct Topology::Graph {
  CsrGraph csr;

  // Scale-up: out links of each vertex, sorted by far end; component of each vertex.
  Rows scale_up;
  std::vector<std::int32_t> component;

  // Hosts: vertices of each, position of a vertex within its host.
  Rows host_vertices;
  std::vector<std::int32_t> host_position;

  // Per GPU (rank): NIC vertex, links to it and back.
  std::vector<std::int32_t> nic;
  Rows to_nic, from_nic;
  Rows near_nic;  // NICs that a pair's channels are spread over, the GPU's own first

  // Fabric: switches numbered 0..F-1, leaves grouped in pods (identical links from above). next.row(pod * F + v) are the
  // links that lead from switch v one hop nearer to any leaf of the pod, over the widest way.
  std::vector<std::int32_t> fabric_index;  // of a vertex, -1 otherwise
  std::vector<std::int32_t> fabric_vertex;
  std::vector<std::int32_t> pod;       // of a vertex that is a leaf, -1 otherwise
  std::vector<std::int32_t> distance;  // pod * F + v: switch hops to the switches just above the leaf; kFar when none
  Rows next;
  Rows fabric_links;  // out links to switches, of each vertex (NICs too), sorted by far end
  Rows from_fabric;   // links from switches into each vertex that is a NIC

  bool nodes_alike = false;
};

}  // namespace cpfit
