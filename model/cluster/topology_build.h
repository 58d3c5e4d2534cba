// Clusters composed from parts: one host as a template, repeated, and a fabric described by rule. Presets, topology files and
// importers of other tools' formats all end here.
//
// What is physically several parallel ways is one link with the sum of their capacities: NVSwitch chips of one plane, NICs
// bonded under one switch. Routing picks one way, so separate chips would give a GPU a fraction of its NVLinks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/cluster/topology.h"
#include "model/quantity/problem.h"
#include "model/quantity/units.h"

namespace cpfit {

/// One host. Vertices carry names without the host ("gpu0"), node 0; links join them, one entry per direction.
struct NodeTemplate {
  std::vector<Vertex> vertices;
  std::vector<Link> links;
  /// What each NIC offers to the fabric, by Vertex::index of the NIC.
  struct Port {
    BytesPerSecond rate;  // one direction, all bonded ports
    std::int32_t lanes = 1;
  };
  std::vector<Port> nic_ports;
  /// Hosts whose GPUs share one NVSwitch plane outside the host (18 trays of an NVL72 rack); 1 when NVLink ends at the host.
  std::int32_t domain_nodes = 1;
  BytesPerSecond domain_uplink;  // GPU to that plane, one direction; used when domain_nodes > 1
  std::int32_t domain_lanes = 0;
  Seconds domain_latency;  // of one link, GPU to plane
};

/// Leaf and spine levels by rule. Rails: NIC of rail r goes to leaf r of its unit; without rails one leaf serves the unit.
/// Leaf to spine carries (what the leaf can take from below) / oversubscription, spread evenly over `spines`. One spine
/// stands for all of them when routing adapts per packet (InfiniBand adaptive routing, SRD, Spectrum-X).
struct FabricRule {
  std::string name;
  bool rails = true;
  std::int32_t nodes_per_unit = 32;  // hosts that share leaves; 0: all
  double oversubscription = 1.0;     // leaf: rate below / rate above
  std::int32_t spines = 1;           // per pod
  std::int32_t nodes_per_pod = 0;    // hosts below one set of spines; 0: all, no level above
  double pod_oversubscription = 1.0;
  Seconds nic_latency;     // NIC to leaf, one way
  Seconds switch_latency;  // leaf to spine, spine to core, one way
};

/// Repeats the host `nodes` times and adds the fabric (none for one host, or when it has no NIC). Vertices: hosts in order, each
/// as in the template, then NVSwitch planes, leaves, spines, cores.
[[nodiscard]] std::shared_ptr<const Topology> assemble(const NodeTemplate& host, const FabricRule& fabric, std::int64_t nodes);

/// Merges NVSwitches that join exactly the same vertices, and NICs of one rail on the same switch, into one each; capacities and
/// lanes add up. Works on hosts and on whole graphs. `ports` (may be empty) follows the NICs.
void merge_parallel_devices(std::vector<Vertex>& vertices, std::vector<Link>& links, std::vector<NodeTemplate::Port>& ports);

/// Both directions of one cable.
void join(std::vector<Link>& links, std::int32_t a, std::int32_t b, LinkClass link_class, BytesPerSecond capacity,
          Seconds latency, std::int32_t lanes = 1);

}  // namespace cpfit
