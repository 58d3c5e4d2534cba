#include "model/cluster/topology_check.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <tuple>

#include "model/cluster/topology.h"
#include "model/quantity/text.h"

namespace cpfit {
namespace {

constexpr std::int64_t kAllPairs = 256;   // GPUs up to which every pair is routed
constexpr double kSheetTolerance = 0.01;  // data sheets round

/// One kind of finding: how often, and the first place.
struct Tally {
  std::int64_t count = 0;
  std::string where, message;
  void add(const std::string& at, const std::string& what) {
    if (count++ == 0) {
      where = at;
      message = what;
    }
  }
  void report(Problems& findings, const char* code, const char* repair) const {
    if (count == 0) return;
    findings.push_back({code, where, count == 1 ? message : fmt::format("{} ({} places like this)", message, count), repair});
  }
};

std::string ends(const Topology& topology, const Link& link) {
  return topology.vertices()[static_cast<std::size_t>(link.from)].name + " -> " +
         topology.vertices()[static_cast<std::size_t>(link.to)].name;
}

void check_links(const Topology& topology, Problems& findings) {
  Tally bandwidth, asymmetric, duplicate;
  std::map<std::tuple<std::int32_t, std::int32_t, LinkClass>, double> seen;
  for (const Link& link : topology.links()) {
    const double capacity = link.capacity.value();
    if (!(capacity > 0) || !std::isfinite(capacity))
      bandwidth.add(ends(topology, link), fmt::format("the capacity is {} B/s", capacity));
    const auto [where, fresh] = seen.try_emplace({link.from, link.to, link.link_class}, capacity);
    if (!fresh) {
      duplicate.add(ends(topology, link), fmt::format("a second {} link between the same ends", name_of(link.link_class)));
      where->second += capacity;
    }
  }
  for (const Link& link : topology.links()) {
    const auto back = seen.find({link.to, link.from, link.link_class});
    const double there = seen.at({link.from, link.to, link.link_class});
    if (back == seen.end()) {
      asymmetric.add(ends(topology, link), "there is no link back");
    } else if (back->second != there) {
      asymmetric.add(ends(topology, link), fmt::format("{} there, {} back", print_rate(BytesPerSecond(there)),
                                                       print_rate(BytesPerSecond(back->second))));
    }
  }
  bandwidth.report(findings, "topology.error.bandwidth", "give every link a rate above zero");
  asymmetric.report(findings, "topology.warning.asymmetric", "list both directions, or use \"between\"");
  duplicate.report(findings, "topology.warning.duplicate", "raise \"count\" of one link instead: a route uses one of them");
}

void check_routes(const Cluster& cluster, Problems& findings) {
  const Topology& topology = *cluster.topology;
  const auto gpus = static_cast<std::int64_t>(topology.gpus().size());
  const auto name = [&](std::int64_t gpu) {
    return topology.vertices()[static_cast<std::size_t>(topology.gpus()[static_cast<std::size_t>(gpu)])].name;
  };
  Tally unreachable, no_nic;
  std::vector<std::int32_t> route;
  const auto visit = [&](std::int64_t a, std::int64_t b) {
    if (a == b) return;
    topology.route_into(a, b, route);
    if (route.empty()) unreachable.add(name(a) + " -> " + name(b), "no route joins these GPUs");
  };
  for (std::int64_t a = 0; a < gpus; ++a) {
    if (gpus <= kAllPairs) {
      for (std::int64_t b = 0; b < gpus; ++b) visit(a, b);
    } else {
      visit(0, a);
      visit(a, 0);
    }
    if (cluster.nodes > 1 && topology.nic_of(a) < 0) no_nic.add(name(a), "no NIC can be reached from this GPU inside its host");
  }
  unreachable.report(findings, "topology.error.unreachable",
                     "add the missing links; routes inside a host never pass through another GPU's PCIe");
  no_nic.report(findings, "topology.error.no_nic", "add a NIC to the host and link it to a PCIe switch or CPU");
}

void check_data_sheet(const Cluster& cluster, Problems& findings) {
  const Topology& topology = *cluster.topology;
  std::map<std::int32_t, double> scale_up, pcie;
  for (const Link& link : topology.links()) {
    if (topology.vertices()[static_cast<std::size_t>(link.from)].kind != VertexKind::kGpu) continue;
    if (is_scale_up(link.link_class)) scale_up[link.from] += link.capacity.value();
    if (link.link_class == LinkClass::kPcie) pcie[link.from] += link.capacity.value();
  }
  Tally sum, host;
  const double sheet = cluster.gpu.scale_up.value();
  for (const std::int32_t gpu : topology.gpus()) {
    const std::string& name = topology.vertices()[static_cast<std::size_t>(gpu)].name;
    const double found = scale_up.contains(gpu) ? scale_up[gpu] : 0.0;
    if (std::abs(found - sheet) > kSheetTolerance * std::max(sheet, 1.0)) {
      sum.add(name, fmt::format("its scale-up links carry {}, {} is sold with {}", print_rate(BytesPerSecond(found)),
                                cluster.gpu.name, print_rate(cluster.gpu.scale_up)));
    }
    if (pcie.contains(gpu) && pcie[gpu] > cluster.gpu.pcie.value() * (1 + kSheetTolerance)) {
      host.add(name, fmt::format("its PCIe link carries {}, {} is sold with {}", print_rate(BytesPerSecond(pcie[gpu])),
                                 cluster.gpu.name, print_rate(cluster.gpu.pcie)));
    }
  }
  sum.report(findings, "topology.warning.scale_up",
             "check rate and count of the links (one direction), or the GPU's name; cards without bridges have none");
  host.report(findings, "topology.warning.pcie", "check the PCIe generation; rates are one direction");
}

/// NICs that the fabric gives far more than their host can: a rate in bits written as bytes is eight times too large.
void check_nics(const Cluster& cluster, Problems& findings) {
  constexpr double kTooMuch = 2.0;
  const Topology& topology = *cluster.topology;
  std::map<std::int32_t, double> inside, outside;  // by NIC vertex
  for (const Link& link : topology.links()) {
    const Vertex &from = topology.vertices()[static_cast<std::size_t>(link.from)],
                 &to = topology.vertices()[static_cast<std::size_t>(link.to)];
    if (from.kind != VertexKind::kNic) continue;
    (to.node == from.node ? inside : outside)[link.from] += link.capacity.value();
  }
  Tally nics;
  for (const auto& [nic, rate] : outside) {
    const auto host = inside.find(nic);
    if (host == inside.end() || rate <= kTooMuch * host->second) continue;
    nics.add(topology.vertices()[static_cast<std::size_t>(nic)].name,
             fmt::format("its network carries {}, its slot in the host {}", print_rate(BytesPerSecond(rate)),
                         print_rate(BytesPerSecond(host->second))));
  }
  nics.report(findings, "topology.warning.nic",
              "a NIC is sold by bits: 400 Gb/s are 50 GB/s; write \"400 Gb/s\", or check the PCIe slot");
}

}  // namespace

Problems check_topology(const Cluster& cluster) {
  Problems findings;
  const auto gpus = static_cast<std::int64_t>(cluster.topology->gpus().size());
  if (gpus != cluster.gpus()) {
    findings.push_back({"topology.error.shape", cluster.name,
                        fmt::format("the graph holds {} GPUs, {} hosts of {} are {}", gpus, cluster.nodes, cluster.gpus_per_node,
                                    cluster.gpus()),
                        ""});
  }
  check_links(*cluster.topology, findings);
  check_routes(cluster, findings);
  check_data_sheet(cluster, findings);
  check_nics(cluster, findings);
  return findings;
}

bool is_error(const Problem& finding) { return finding.code.starts_with("topology.error."); }

}  // namespace cpfit
