// What a cluster is composed of, as plain values: the rows of model/presets/clusters.toml, and what a topology file with
// "base" changes in one of them. Building turns it into a host template, a fabric rule and the graph.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/cluster/cluster.h"
#include "model/cluster/topology_build.h"
#include "model/quantity/problem.h"

namespace cpfit {

enum class ScaleUpKind : std::uint8_t { kNone, kSwitch, kMesh };

struct MeshEdge {
  std::int32_t a = 0, b = 0, lanes = 1;  // GPUs of the host
};

/// Latency of one link, one way.
struct LinkLatencies {
  Seconds nvlink, xgmi, pcie, socket, local;
};

struct ClusterSpec {
  std::string name;
  std::vector<std::string> aliases;
  std::string gpu;  // a name find_gpu knows
  std::int32_t gpus = 8;
  ScaleUpKind scale_up = ScaleUpKind::kNone;
  std::int32_t links = 0;  // per GPU, kSwitch
  BytesPerSecond link_rate;
  std::vector<MeshEdge> mesh;
  bool mesh_all = false;  // one link between any two GPUs
  std::int32_t domain_nodes = 1;
  std::int32_t domain_spares = 0;
  std::int32_t cpus = 1;
  BytesPerSecond cpu_rate;
  double cpu_slowdown = 1.0;  // Cluster::cpu_slowdown
  std::int32_t pcie_switches = 0;
  BytesPerSecond pcie_rate;
  bool gpu_on_c2c = false;  // GPU to CPU over NVLink-C2C at Gpu::pcie instead of PCIe
  std::int32_t nics = 0;
  BytesPerSecond nic_rate;  // of one NIC, ports together
  std::int32_t nic_ports = 1;
  bool nics_on_sockets = false;  // NICs hang under the sockets, not under the GPUs' PCIe switches
  LinkLatencies latency;
  FabricRule fabric;
  std::string source;
  std::vector<std::string> assumed;
};

/// Every preset, in the order of the file.
[[nodiscard]] std::vector<ClusterSpec> cluster_specs();
[[nodiscard]] Outcome<ClusterSpec> find_cluster_spec(const std::string& name);

/// Sets one value by its name in clusters.toml ("nic_rate" = "200 Gb/s", "oversubscription" = "2"). Problems: unknown key with
/// the nearest, unreadable value, value out of range.
[[nodiscard]] Problems override_value(ClusterSpec& spec, const std::string& key, const std::string& value,
                                      const std::string& where);

[[nodiscard]] NodeTemplate node_template(const ClusterSpec& spec, const Gpu& gpu);
/// Problems: unknown GPU, nodes out of range.
[[nodiscard]] Outcome<Cluster> build_cluster(const ClusterSpec& spec, std::int64_t nodes);

}  // namespace cpfit
