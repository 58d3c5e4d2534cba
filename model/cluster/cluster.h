// A cluster: nodes of GPUs, composed from parts into a topology graph. Presets in model/presets/clusters.toml; a topology
// file (docs in topology_file.h) describes what no preset holds.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model/cluster/gpu.h"
#include "model/quantity/problem.h"

namespace cpfit {

class Topology;  // topology.h

using DeviceOrders = std::vector<std::vector<std::int32_t>>;

struct Cluster {
  std::string name;  // preset or file
  Gpu gpu;
  std::int32_t gpus_per_node = 8;    // GPUs of one host
  std::int32_t scale_up_domain = 8;  // GPUs that reach each other over NVLink/xGMI (72 for NVL72); 1 for PCIe boxes
  std::int64_t nodes = 1;
  double cpu_slowdown = 1.0;                 // time of the same Python code over a DGX H100's
  std::shared_ptr<const Topology> topology;  // the whole graph; immutable
  DeviceOrders device_orders;                // (kinds of hosts, gpus_per_node) as the topology ranks its GPUs; empty: as numbered
  std::string source;
  /// Builds the same kind of cluster with another number of nodes; empty where a file draws one cluster vertex by vertex.
  std::function<Outcome<Cluster>(std::int64_t nodes)> resized;
  [[nodiscard]] std::int64_t gpus() const { return nodes * gpus_per_node; }
};

/// The same cluster with another number of nodes: its GPU, name and overrides stay. Problem: it cannot be resized, or out of
/// range.
[[nodiscard]] Outcome<Cluster> with_nodes(const Cluster& cluster, std::int64_t nodes);

[[nodiscard]] std::vector<std::string> cluster_preset_names();
/// Builds a preset with that many nodes. Problems: unknown name (with the nearest), nodes out of range.
[[nodiscard]] Outcome<Cluster> build_cluster(const std::string& preset, std::int64_t nodes);
/// Reads a topology file (own JSON format, topology_file.h).
[[nodiscard]] Outcome<Cluster> load_cluster(const std::string& path, std::int64_t nodes);

}  // namespace cpfit
