#include "model/cluster/host_copies.h"

#include <algorithm>
#include <map>
#include <vector>

#include "model/cluster/cluster.h"
#include "model/quantity/index.h"

namespace cpfit {

HostCopies host_copies(const Cluster& cluster, std::int64_t gpus) {
  const Topology& topology = *cluster.topology;
  const std::int64_t copying = std::min<std::int64_t>(gpus, cluster.gpus_per_node);
  const std::int32_t node = topology.vertices()[at(topology.gpus()[0])].node;
  std::vector<std::int32_t> cpus;
  for (std::size_t v = 0; v < topology.vertices().size(); ++v) {
    const Vertex& vertex = topology.vertices()[v];
    if (vertex.kind == VertexKind::kCpu && vertex.node == node) cpus.push_back(static_cast<std::int32_t>(v));
  }
  std::vector<std::vector<std::int32_t>> ways;
  std::map<std::int32_t, double> load;  // copies over a link
  for (std::int64_t rank = 0; rank < copying; ++rank) {
    std::vector<std::int32_t> nearest;
    for (const std::int32_t cpu : cpus) {
      std::vector<std::int32_t> way = topology.host_path(topology.gpus()[at(rank)], cpu);
      if (!way.empty() && (nearest.empty() || way.size() < nearest.size())) nearest = std::move(way);
    }
    for (const std::int32_t link : nearest) load[link] += 1.0;
    ways.push_back(std::move(nearest));
  }
  HostCopies copies;
  for (const std::vector<std::int32_t>& way : ways) {
    if (way.empty()) return {};
    Seconds latency;
    for (const std::int32_t index : way) latency += topology.links()[at(index)].latency;
    for (const std::int32_t index : way) {
      const Link& link = topology.links()[at(index)];
      const double share = link.capacity.value() / load.at(index);
      if (copies.rate.value() > 0 && share >= copies.rate.value()) continue;
      copies = {BytesPerSecond(share), latency, link.link_class};
    }
  }
  return copies;
}

}  // namespace cpfit
