// A fabric of hosts and switches made whole: the host of the GPU's preset on every place, cables as counted; where the file
// counts none (Slurm), every NIC of a host goes to its leaf and each level can carry what hangs below it.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "model/cluster/import/complete.h"
#include "model/cluster/import/scan.h"
#include "model/quantity/index.h"
#include "model/quantity/text.h"

namespace cpfit {
namespace {

constexpr std::int64_t kMostGpus = 131072;

/// Rate of all NICs below each switch, leaves first; parents are the far ends `b` of trunks (Slurm's trees only).
std::vector<BytesPerSecond> rates_below(const ImportedFabric& fabric, std::size_t hosts, BytesPerSecond per_host) {
  std::vector<BytesPerSecond> below(fabric.switches.size());
  std::vector<std::int32_t> parent(fabric.switches.size(), -1);
  for (const ImportedFabric::Trunk& trunk : fabric.trunks) parent[at(trunk.a)] = trunk.b;
  for (std::size_t h = 0; h < hosts; ++h) {
    for (std::int32_t above = fabric.hosts[h].ports[0].fabric_switch; above >= 0; above = parent[at(above)])
      below[at(above)] += per_host;
  }
  return below;
}

}  // namespace

Problems complete_fabric(const ImportedFabric& fabric, const std::string& where, const ImportDefaults& defaults,
                         std::int64_t nodes, ImportedCluster& out) {
  ClusterSpec spec = defaults.spec;
  if (fabric.ports_counted) {
    spec.nics = static_cast<std::int32_t>(fabric.hosts[0].ports.size());
    spec.nic_ports = 1;
  } else if (spec.nics == 0) {
    return {
        scan::problem("no_nic", where, 0, fmt::format("hosts of the preset {} have no NIC", spec.name), "give another --gpu")};
  }
  if (defaults.nic_rate) spec.nic_rate = *defaults.nic_rate * spec.nic_ports;
  const auto listed = static_cast<std::int64_t>(fabric.hosts.size());
  const std::int64_t wanted = nodes > 0 ? nodes : listed;
  if (wanted > listed) {
    return {scan::problem("nodes", where, 0, fmt::format("the file lists {} hosts, {} were asked for", listed, nodes),
                          fmt::format("ask for up to {}", listed))};
  }
  if (wanted * spec.gpus > kMostGpus)
    return {scan::problem("nodes", where, 0,
                          fmt::format("{} hosts of {} GPUs are more than {} GPUs", wanted, spec.gpus, kMostGpus),
                          "take fewer with --nodes")};

  NodeTemplate host = node_template(spec, defaults.gpu);
  const std::vector<NodeTemplate::Port> ports = host.nic_ports;
  host.nic_ports.clear();  // the fabric is added below
  const bool domains = host.domain_nodes > 1;
  const std::int32_t lanes = host.domain_lanes;
  const BytesPerSecond uplink = host.domain_uplink;
  const Seconds plane_latency = host.domain_latency;
  if (domains && !fabric.blocks.empty()) host.domain_nodes = 1;  // planes follow the blocks
  const std::shared_ptr<const Topology> hosts = assemble(host, spec.fabric, wanted);
  std::vector<Vertex> vertices = hosts->vertices();
  std::vector<Link> links = hosts->links();
  const auto first_of = [&](std::int64_t node) {
    return static_cast<std::int32_t>(node * static_cast<std::int64_t>(host.vertices.size()));
  };

  if (domains && !fabric.blocks.empty()) {
    std::int32_t index = 0;
    for (const std::vector<std::int32_t>& block : fabric.blocks) {
      const auto plane = static_cast<std::int32_t>(vertices.size());
      bool used = false;
      for (const std::int32_t node : block) {
        if (node >= wanted) continue;
        if (!used) vertices.push_back({fmt::format("domain{}.nvsw0", index), VertexKind::kNvSwitch, -1, index, -1});
        used = true;
        for (std::size_t v = 0; v < host.vertices.size(); ++v) {
          if (host.vertices[v].kind == VertexKind::kGpu)
            join(links, first_of(node) + static_cast<std::int32_t>(v), plane, LinkClass::kNvlink, uplink, plane_latency, lanes);
        }
      }
      index += used ? 1 : 0;
    }
    out.notes.push_back("each block is taken as one NVLink domain");
  }

  std::vector<std::map<std::int32_t, std::int32_t>> rails(fabric.switches.size());  // how often each NIC number arrives
  std::vector<std::int32_t> nic_vertex;
  for (std::size_t v = 0; v < host.vertices.size(); ++v) {
    if (host.vertices[v].kind == VertexKind::kNic) nic_vertex.push_back(static_cast<std::int32_t>(v));
  }
  const auto first_switch = static_cast<std::int32_t>(vertices.size());
  BytesPerSecond per_host;
  for (std::int64_t node = 0; node < wanted; ++node) {
    const std::vector<ImportedFabric::Port>& at_host = fabric.hosts[static_cast<std::size_t>(node)].ports;
    for (std::size_t nic = 0; nic < nic_vertex.size(); ++nic) {
      const ImportedFabric::Port& port = at_host[fabric.ports_counted ? nic : 0];
      const BytesPerSecond rate = port.rate && !defaults.nic_rate ? *port.rate : ports[nic].rate;
      join(links, first_of(node) + nic_vertex[nic], first_switch + port.fabric_switch, LinkClass::kNic, rate,
           spec.fabric.nic_latency, ports[nic].lanes);
      ++rails[at(port.fabric_switch)][static_cast<std::int32_t>(nic)];
      if (node == 0) per_host += rate;
    }
  }
  std::int32_t leaves = 0, spines = 0;
  for (std::size_t s = 0; s < fabric.switches.size(); ++s) {
    const bool leaf = fabric.switches[s].leaf;
    std::int32_t rail = -1, most = 0;
    for (const auto& [nic, count] : rails[s]) {
      if (count > most && fabric.ports_counted) {
        rail = nic;
        most = count;
      }
    }
    const std::int32_t index = leaf ? leaves++ : spines++;
    vertices.push_back({fmt::format("{}{}", leaf ? "leaf" : "spine", index), leaf ? VertexKind::kLeaf : VertexKind::kSpine, -1,
                        index, leaf ? rail : -1});
  }
  const std::vector<BytesPerSecond> below =
      fabric.ports_counted ? std::vector<BytesPerSecond>{} : rates_below(fabric, static_cast<std::size_t>(wanted), per_host);
  std::size_t idle = 0;
  for (const ImportedFabric::Trunk& trunk : fabric.trunks) {
    const BytesPerSecond rate = trunk.rate ? *trunk.rate : below[at(trunk.a)];
    if (!(rate.value() > 0)) {  // no host below, where only some hosts are taken
      ++idle;
      continue;
    }
    join(links, first_switch + trunk.a, first_switch + trunk.b, LinkClass::kSpine, rate, spec.fabric.switch_latency, trunk.lanes);
  }
  if (!fabric.ports_counted) {
    out.notes.push_back(
        fmt::format("the file holds no rates: {} NICs of {} per host as in the preset {}, switches that carry all that "
                    "hangs below them (assumed)",
                    spec.nics, print_rate(spec.nic_rate), spec.name));
  }
  if (idle > 0) out.notes.push_back(fmt::format("{} switches have no hosts below them", idle));
  out.notes.push_back(fmt::format("hosts are taken as those of the preset {}; latencies of the fabric too", spec.name));
  out.cluster.gpus_per_node = spec.gpus;
  out.cluster.nodes = wanted;
  out.cluster.cpu_slowdown = spec.cpu_slowdown;
  out.cluster.topology = std::make_shared<const Topology>(std::move(vertices), std::move(links));
  return {};
}

}  // namespace cpfit
