#include "gui/topology/traffic_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "model/quantity/text.h"

namespace cpfit::gui {

namespace {

std::int64_t node_of(const NetworkPicture& picture, std::int64_t rank) {
  return rank / std::max<std::int64_t>(1, picture.cluster.gpus_per_node);
}

}  // namespace

TrafficMatrix traffic_matrix(const NetworkPicture& picture, bool by_node, const Axis* only) {
  TrafficMatrix matrix;
  matrix.by_node = by_node;
  std::int64_t ranks = 0;
  for (const PairFlow& flow : picture.flows) ranks = std::max({ranks, flow.from + 1, flow.to + 1});
  matrix.size = by_node && ranks > 0 ? node_of(picture, ranks - 1) + 1 : ranks;
  matrix.bytes.assign(static_cast<std::size_t>(matrix.size * matrix.size), 0.0);
  for (const PairFlow& flow : picture.flows) {
    if (only != nullptr && flow.axis != *only) continue;
    const std::int64_t from = by_node ? node_of(picture, flow.from) : flow.from;
    const std::int64_t to = by_node ? node_of(picture, flow.to) : flow.to;
    double& cell = matrix.bytes[static_cast<std::size_t>(from * matrix.size + to)];
    cell += flow.bytes;
    matrix.most = std::max(matrix.most, cell);
  }
  return matrix;
}

double matrix_shade(const TrafficMatrix& matrix, std::int64_t from, std::int64_t to) {
  const double bytes = matrix.at(from, to);
  if (bytes <= 0 || matrix.most <= 0) return 0;
  const double decades = std::log10(bytes / matrix.most) / 4.0 + 1.0;  // 1 at the largest, 0 four decades below
  return 0.15 + 0.85 * std::clamp(decades, 0.0, 1.0);
}

BlockSums block_sums(const TrafficMatrix& matrix, const PairBlock& block) {
  BlockSums sums;
  for (std::int64_t from = block.from_first; from <= std::min(block.from_last, matrix.size - 1); ++from) {
    for (std::int64_t to = block.to_first; to <= std::min(block.to_last, matrix.size - 1); ++to) {
      if (matrix.at(from, to) <= 0) continue;
      ++sums.pairs;
      sums.bytes += matrix.at(from, to);
    }
  }
  return sums;
}

std::vector<std::int32_t> links_of(const NetworkPicture& picture, const TrafficMatrix& matrix, const PairBlock& block) {
  std::set<std::int32_t> links;
  std::vector<std::int32_t> route;
  const auto inside = [](std::int64_t value, std::int64_t first, std::int64_t last) { return value >= first && value <= last; };
  for (const PairFlow& flow : picture.flows) {
    const std::int64_t from = matrix.by_node ? node_of(picture, flow.from) : flow.from;
    const std::int64_t to = matrix.by_node ? node_of(picture, flow.to) : flow.to;
    if (!inside(from, block.from_first, block.from_last) || !inside(to, block.to_first, block.to_last)) continue;
    picture.topology().route_into(flow.from, flow.to, route);
    links.insert(route.begin(), route.end());
  }
  return {links.begin(), links.end()};
}

std::string topology_dot(const NetworkPicture& picture, const LinkEdits& edits) {
  const Topology& topology = picture.topology();
  std::string text = "digraph topology {\n  rankdir=TB;\n  node [shape=box];\n";
  std::int32_t nodes = 0;
  for (const Vertex& vertex : topology.vertices()) nodes = std::max(nodes, vertex.node + 1);
  for (std::int32_t node = -1; node < nodes; ++node) {
    if (node >= 0) text += fmt::format("  subgraph cluster_{0} {{\n    label=\"node {0}\";\n", node);
    for (const Vertex& vertex : topology.vertices()) {
      if (vertex.node == node) text += fmt::format("    \"{}\";\n", vertex.name);
    }
    if (node >= 0) text += "  }\n";
  }
  for (std::size_t l = 0; l < topology.links().size(); ++l) {
    const Link& link = topology.links()[l];
    const bool edited = edits.contains(static_cast<std::int32_t>(l));
    text +=
        fmt::format("  \"{}\" -> \"{}\" [label=\"{}, {}\"{}];\n", topology.vertices()[static_cast<std::size_t>(link.from)].name,
                    topology.vertices()[static_cast<std::size_t>(link.to)].name, print_rate(link.capacity),
                    print_share(picture.links[l].share), edited ? ", style=dashed" : "");
  }
  return text + "}\n";
}

std::string links_csv(const NetworkPicture& picture, const LinkEdits& edits) {
  const Topology& topology = picture.topology();
  std::string text = "from,to,class,capacity_bytes_per_second,latency_seconds,bytes,busy_share,flows,edited\n";
  for (std::size_t l = 0; l < topology.links().size(); ++l) {
    const Link& link = topology.links()[l];
    const LinkTraffic& traffic = picture.links[l];
    text += fmt::format("{},{},{},{},{},{},{},{},{}\n", topology.vertices()[static_cast<std::size_t>(link.from)].name,
                        topology.vertices()[static_cast<std::size_t>(link.to)].name, name_of(link.link_class),
                        link.capacity.value(), link.latency.value(), traffic.bytes, traffic.share, traffic.flows,
                        edits.contains(static_cast<std::int32_t>(l)) ? 1 : 0);
  }
  return text;
}

std::string matrix_csv(const TrafficMatrix& matrix) {
  std::string text = matrix.by_node ? "bytes from node (row) to node (column)" : "bytes from rank (row) to rank (column)";
  for (std::int64_t to = 0; to < matrix.size; ++to) text += fmt::format(",{}", to);
  text += "\n";
  for (std::int64_t from = 0; from < matrix.size; ++from) {
    text += std::to_string(from);
    for (std::int64_t to = 0; to < matrix.size; ++to) text += fmt::format(",{}", matrix.at(from, to));
    text += "\n";
  }
  return text;
}

}  // namespace cpfit::gui
