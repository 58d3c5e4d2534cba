#include "model/cluster/cluster_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "model/cluster/device_order.h"
#include "model/cluster/preset_table.h"
#include "model/quantity/text.h"

namespace cpfit {
namespace {

constexpr const char* kClusterFile = "presets/clusters.toml";
constexpr std::int64_t kMostGpus = 131072;  // the graph of that many takes about a GiB

[[noreturn]] void stop(const std::string& what) {
  std::fprintf(stderr, "cpfit: internal error: %s: %s\n", kClusterFile, what.c_str());
  std::abort();
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// "0-3x2": GPUs 0 and 3, two links.
MeshEdge mesh_edge(const std::string& text) {
  MeshEdge edge;
  const int fields = std::sscanf(text.c_str(), "%d-%dx%d", &edge.a, &edge.b, &edge.lanes);
  if (fields < 2) stop("mesh edge '" + text + "'");
  return edge;
}

template <class T, class Parse>
Problems set_quantity(T& target, const std::string& value, const std::string& where, Parse parse) {
  const auto parsed = parse(value);
  if (!parsed) {
    Problems problems = parsed.problems();
    for (Problem& problem : problems) problem.where = where;
    return problems;
  }
  target = *parsed;
  return {};
}

Problems set_rate(BytesPerSecond& target, const std::string& value, const std::string& where) {
  const BytesPerSecond before = target;
  Problems problems = set_quantity(target, value, where, parse_rate);
  if (problems.empty() && !(target.value() > 0)) {
    target = before;
    problems.push_back(
        {"topology.bandwidth", where, fmt::format("a rate of {} carries nothing", value), "give a rate above zero"});
  }
  return problems;
}

Problems set_count(std::int32_t& target, const std::string& value, const std::string& where, std::int32_t low,
                   std::int32_t high) {
  std::int32_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < low || number > high) {
    return {{"topology.value", where, fmt::format("'{}' is not a whole number from {} to {}", value, low, high), ""}};
  }
  target = number;
  return {};
}

Problems set_ratio(double& target, const std::string& value, const std::string& where) {
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  if (value.empty() || *end != '\0' || !(number >= 1.0 && number <= 64.0)) {
    return {{"topology.value", where, fmt::format("'{}' is not an oversubscription from 1 to 64", value),
             "write 3 for 3:1, three times more capacity below than above"}};
  }
  target = number;
  return {};
}

Problems set_slowdown(double& target, const std::string& value, const std::string& where) {
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  if (value.empty() || *end != '\0' || !(number >= 0.1 && number <= 10.0)) {
    return {{"topology.value", where, fmt::format("'{}' is not a ratio of times from 0.1 to 10", value),
             "write 1.5 where Python takes half as long again as on a DGX H100"}};
  }
  target = number;
  return {};
}

Problems set_flag(bool& target, const std::string& value, const std::string& where) {
  if (value != "true" && value != "false")
    return {{"topology.value", where, fmt::format("'{}' is neither true nor false", value), ""}};
  target = value == "true";
  return {};
}

using Setter = Problems (*)(ClusterSpec&, const std::string&, const std::string&);

/// What a cluster row or a topology file may set, by name.
const std::map<std::string, Setter>& setters() {
  static const std::map<std::string, Setter> kSetters = {
      {"gpu",
       [](ClusterSpec& spec, const std::string& value, const std::string&) {
         spec.gpu = value;
         return Problems{};
       }},
      {"gpus", [](ClusterSpec& s, const std::string& v, const std::string& w) { return set_count(s.gpus, v, w, 1, 1024); }},
      {"links", [](ClusterSpec& s, const std::string& v, const std::string& w) { return set_count(s.links, v, w, 1, 1024); }},
      {"link_rate", [](ClusterSpec& s, const std::string& v, const std::string& w) { return set_rate(s.link_rate, v, w); }},
      {"domain_nodes",
       [](ClusterSpec& s, const std::string& v, const std::string& w) { return set_count(s.domain_nodes, v, w, 1, 4096); }},
      {"domain_spares",
       [](ClusterSpec& s, const std::string& v, const std::string& w) { return set_count(s.domain_spares, v, w, 0, 64); }},
      {"cpus", [](ClusterSpec& s, const std::string& v, const std::string& w) { return set_count(s.cpus, v, w, 1, 64); }},
      {"cpu_rate", [](ClusterSpec& s, const std::string& v, const std::string& w) { return set_rate(s.cpu_rate, v, w); }},
      {"cpu_slowdown",
       [](ClusterSpec& s, const std::string& v, const std::string& w) { return set_slowdown(s.cpu_slowdown, v, w); }},
      {"pcie_switches",
       [](ClusterSpec& s, const std::string& v, const std::string& w) { return set_count(s.pcie_switches, v, w, 0, 256); }},
      {"pcie_rate", [](ClusterSpec& s, const std::string& v, const std::string& w) { return set_rate(s.pcie_rate, v, w); }},
      {"nics", [](ClusterSpec& s, const std::string& v, const std::string& w) { return set_count(s.nics, v, w, 0, 256); }},
      {"nic_rate", [](ClusterSpec& s, const std::string& v, const std::string& w) { return set_rate(s.nic_rate, v, w); }},
      {"nic_ports",
       [](ClusterSpec& s, const std::string& v, const std::string& w) { return set_count(s.nic_ports, v, w, 1, 64); }},
      {"nics_on_sockets",
       [](ClusterSpec& s, const std::string& v, const std::string& w) { return set_flag(s.nics_on_sockets, v, w); }},
      {"rails", [](ClusterSpec& s, const std::string& v, const std::string& w) { return set_flag(s.fabric.rails, v, w); }},
      {"nodes_per_unit", [](ClusterSpec& s, const std::string& v,
                            const std::string& w) { return set_count(s.fabric.nodes_per_unit, v, w, 0, 65536); }},
      {"oversubscription",
       [](ClusterSpec& s, const std::string& v, const std::string& w) { return set_ratio(s.fabric.oversubscription, v, w); }},
      {"spines",
       [](ClusterSpec& s, const std::string& v, const std::string& w) { return set_count(s.fabric.spines, v, w, 1, 1024); }},
      {"nodes_per_pod", [](ClusterSpec& s, const std::string& v,
                           const std::string& w) { return set_count(s.fabric.nodes_per_pod, v, w, 0, 65536); }},
      {"pod_oversubscription",
       [](ClusterSpec& s, const std::string& v, const std::string& w) { return set_ratio(s.fabric.pod_oversubscription, v, w); }},
      {"nic_latency", [](ClusterSpec& s, const std::string& v,
                         const std::string& w) { return set_quantity(s.fabric.nic_latency, v, w, parse_time); }},
      {"switch_latency", [](ClusterSpec& s, const std::string& v,
                            const std::string& w) { return set_quantity(s.fabric.switch_latency, v, w, parse_time); }},
  };
  return kSetters;
}

/// Applies every key of a preset row that names a value; the others are the row's own business.
void apply(ClusterSpec& spec, const PresetTable& row) {
  for (const std::string& key : row.keys()) {
    if (!setters().contains(key)) continue;
    const Problems problems = override_value(spec, key, row.written(key), key);
    if (!problems.empty()) stop(to_text(problems.front()));
  }
}

ClusterSpec read_host(const PresetTable& row, const LinkLatencies& latency) {
  ClusterSpec spec;
  spec.latency = latency;
  const std::string kind = row.text("scale_up");
  if (kind != "switch" && kind != "mesh" && kind != "none") stop("scale_up = '" + kind + "'");
  spec.scale_up = kind == "switch" ? ScaleUpKind::kSwitch : kind == "mesh" ? ScaleUpKind::kMesh : ScaleUpKind::kNone;
  if (row.has("mesh")) {
    for (const std::string& edge : row.texts("mesh")) {
      if (edge == "all") {
        spec.mesh_all = true;
      } else {
        spec.mesh.push_back(mesh_edge(edge));
      }
    }
  }
  spec.gpu_on_c2c = row.has("gpu_host_link") && row.text("gpu_host_link") == "c2c";
  apply(spec, row);
  spec.assumed = row.texts("assumed");
  spec.source = row.text("source");
  return spec;
}

/// Groups of `count` devices over `parents`: device i under floor(i * parents / count).
std::int32_t parent_of(std::int32_t device, std::int32_t count, std::int32_t parents) {
  return static_cast<std::int32_t>(std::int64_t{device} * parents / count);
}

}  // namespace

std::vector<ClusterSpec> cluster_specs() {
  const PresetTable times = PresetTable::table(kClusterFile, "latency");
  const LinkLatencies latency{times.time("nvlink"), times.time("xgmi"), times.time("pcie"), times.time("socket"),
                              times.time("local")};
  std::map<std::string, ClusterSpec> hosts;
  for (const PresetTable& row : PresetTable::rows(kClusterFile, "host")) hosts.emplace(row.text("name"), read_host(row, latency));
  std::map<std::string, PresetTable> fabrics;
  for (const PresetTable& row : PresetTable::rows(kClusterFile, "fabric")) fabrics.emplace(row.text("name"), row);

  std::vector<ClusterSpec> specs;
  for (const PresetTable& row : PresetTable::rows(kClusterFile, "cluster")) {
    const auto host = hosts.find(row.text("host"));
    const auto fabric = fabrics.find(row.text("fabric"));
    if (host == hosts.end() || fabric == fabrics.end()) stop(row.text("name") + " names an unknown host or fabric");
    ClusterSpec spec = host->second;
    spec.name = row.text("name");
    spec.aliases = row.texts("aliases");
    spec.fabric.name = row.text("fabric");
    apply(spec, fabric->second);
    apply(spec, row);
    spec.source = row.text("source") + "; host: " + spec.source + "; fabric: " + fabric->second.text("source");
    for (const auto& more : {row.texts("assumed"), fabric->second.texts("assumed")}) {
      spec.assumed.insert(spec.assumed.end(), more.begin(), more.end());
    }
    specs.push_back(std::move(spec));
  }
  return specs;
}

Outcome<ClusterSpec> find_cluster_spec(const std::string& name) {
  constexpr std::size_t kNamed = 4;
  std::vector<std::string> known, with_part;  // "h100" is a part of "dgx-h100"
  const std::string wanted = lower(name);
  for (ClusterSpec& spec : cluster_specs()) {
    const auto matches = [&](const std::string& alias) { return lower(alias) == wanted; };
    if (matches(spec.name) || std::any_of(spec.aliases.begin(), spec.aliases.end(), matches)) return std::move(spec);
    known.push_back(spec.name);
    known.insert(known.end(), spec.aliases.begin(), spec.aliases.end());
    if (("-" + spec.name + "-").find("-" + wanted + "-") != std::string::npos && with_part.size() < kNamed)
      with_part.push_back(fmt::format("'{}'", spec.name));
  }
  const std::string nearest = nearest_name(name, known);
  return Problem{"cluster.unknown", name, fmt::format("no cluster preset is called '{}'", name),
                 !with_part.empty()
                     ? fmt::format("did you mean {}? `cpfit presets clusters` lists all", fmt::join(with_part, ", "))
                 : nearest.empty() ? "`cpfit presets clusters` lists them; a topology file describes any other cluster"
                                   : fmt::format("did you mean '{}'?", nearest)};
}

Problems override_value(ClusterSpec& spec, const std::string& key, const std::string& value, const std::string& where) {
  const auto setter = setters().find(key);
  if (setter != setters().end()) return setter->second(spec, value, where);
  std::vector<std::string> known;
  for (const auto& [name, unused] : setters()) known.push_back(name);
  const std::string nearest = nearest_name(key, known);
  return {
      {"topology.unknown_key", where, fmt::format("a cluster has no value '{}'", key),
       nearest.empty() ? fmt::format("known values: {}", fmt::join(known, ", ")) : fmt::format("did you mean '{}'?", nearest)}};
}

NodeTemplate node_template(const ClusterSpec& spec, const Gpu& gpu) {
  NodeTemplate host;
  const auto add = [&](const char* stem, VertexKind kind, std::int32_t count) {
    const auto first = static_cast<std::int32_t>(host.vertices.size());
    for (std::int32_t i = 0; i < count; ++i) {
      host.vertices.push_back({stem + std::to_string(i), kind, 0, i, kind == VertexKind::kNic ? i : -1});
    }
    return first;
  };
  const std::int32_t gpus = add("gpu", VertexKind::kGpu, spec.gpus);
  const std::int32_t nics = add("nic", VertexKind::kNic, spec.nics);
  const std::int32_t switches = add("pcie", VertexKind::kPcieSwitch, spec.pcie_switches);
  const std::int32_t cpus = add("cpu", VertexKind::kCpu, spec.cpus);

  const auto attach = [&](std::int32_t first, std::int32_t count, LinkClass link, BytesPerSecond rate, Seconds latency,
                          bool to_sockets = false) {
    for (std::int32_t i = 0; i < count; ++i) {
      const std::int32_t parent = spec.pcie_switches > 0 && !to_sockets ? switches + parent_of(i, count, spec.pcie_switches)
                                                                        : cpus + parent_of(i, count, spec.cpus);
      join(host.links, first + i, parent, link, rate, latency);
    }
  };
  if (spec.gpu_on_c2c) {
    attach(gpus, spec.gpus, LinkClass::kLocal, gpu.pcie, spec.latency.local);
  } else {
    attach(gpus, spec.gpus, LinkClass::kPcie, spec.pcie_rate, spec.latency.pcie);
  }
  attach(nics, spec.nics, LinkClass::kPcie, spec.pcie_rate, spec.latency.pcie, spec.nics_on_sockets);
  for (std::int32_t i = 0; i < spec.pcie_switches; ++i) {
    join(host.links, switches + i, cpus + parent_of(i, spec.pcie_switches, spec.cpus), LinkClass::kPcie, spec.pcie_rate,
         spec.latency.pcie);
  }
  for (std::int32_t a = 0; a < spec.cpus; ++a) {
    for (std::int32_t b = a + 1; b < spec.cpus; ++b) {
      join(host.links, cpus + a, cpus + b, LinkClass::kSocket, spec.cpu_rate, spec.latency.socket);
    }
  }

  const bool amd = gpu.scale_up_link.starts_with("xgmi");
  const LinkClass scale_up = amd ? LinkClass::kXgmi : LinkClass::kNvlink;
  const Seconds latency = amd ? spec.latency.xgmi : spec.latency.nvlink;
  if (spec.scale_up == ScaleUpKind::kSwitch) {
    if (spec.domain_nodes > 1) {
      host.domain_nodes = spec.domain_nodes;
      host.domain_uplink = spec.link_rate * spec.links;
      host.domain_lanes = spec.links;
      host.domain_latency = latency / 2;
    } else {
      const std::int32_t plane = add("nvsw", VertexKind::kNvSwitch, 1);
      for (std::int32_t i = 0; i < spec.gpus; ++i) {
        join(host.links, gpus + i, plane, scale_up, spec.link_rate * spec.links, latency / 2, spec.links);
      }
    }
  } else if (spec.scale_up == ScaleUpKind::kMesh) {
    std::vector<MeshEdge> mesh = spec.mesh;
    for (std::int32_t a = 0; spec.mesh_all && a < spec.gpus; ++a) {
      for (std::int32_t b = a + 1; b < spec.gpus; ++b) mesh.push_back({a, b, 1});
    }
    for (const MeshEdge& edge : mesh) {
      if (edge.a >= spec.gpus || edge.b >= spec.gpus) continue;  // a topology file asked for fewer GPUs
      join(host.links, gpus + edge.a, gpus + edge.b, scale_up, spec.link_rate * edge.lanes, latency, edge.lanes);
    }
  }
  for (std::int32_t i = 0; i < spec.nics; ++i) host.nic_ports.push_back({spec.nic_rate, spec.nic_ports});
  return host;
}

Outcome<Cluster> build_cluster(const ClusterSpec& spec, std::int64_t nodes) {
  const Outcome<Gpu> gpu = find_gpu(spec.gpu);
  if (!gpu) return gpu.problems();
  if (nodes < 1 || nodes * spec.gpus > kMostGpus) {
    return Problem{"cluster.nodes", spec.name, fmt::format("{} nodes of {} GPUs are out of range", nodes, spec.gpus),
                   fmt::format("give 1 to {} nodes", kMostGpus / spec.gpus)};
  }
  NodeTemplate host = node_template(spec, *gpu);
  // Racks with spare trays: jobs that fill `domain_nodes - spares` trays of each rack, when the count says so.
  const std::int32_t used = spec.domain_nodes - spec.domain_spares;
  if (host.domain_nodes > 1 && nodes > host.domain_nodes && nodes % host.domain_nodes != 0 && nodes % used == 0)
    host.domain_nodes = used;

  Cluster cluster;
  cluster.name = spec.name;
  cluster.gpu = *gpu;
  cluster.gpus_per_node = spec.gpus;
  cluster.nodes = nodes;
  cluster.cpu_slowdown = spec.cpu_slowdown;
  cluster.source = spec.source;
  cluster.topology = assemble(host, spec.fabric, nodes);
  std::int32_t domain = 0;  // GPUs joined with the first one
  while (domain < cluster.gpus() && cluster.topology->scale_up_component(domain) == cluster.topology->scale_up_component(0))
    ++domain;
  cluster.scale_up_domain = domain;
  cluster.resized = [spec](std::int64_t count) { return build_cluster(spec, count); };
  return cluster;
}

Outcome<Cluster> with_nodes(const Cluster& cluster, std::int64_t nodes) {
  if (nodes == cluster.nodes) return cluster;
  if (!cluster.resized) {
    return Problem{"cluster.resize", cluster.name, fmt::format("{} is drawn whole, with {} nodes", cluster.name, cluster.nodes),
                   "describe one host and a fabric by rule (docs/topology.md), then any number of nodes can be built"};
  }
  Outcome<Cluster> built = cluster.resized(nodes);
  if (!built) return built;
  Cluster other = std::move(built).value();
  other.name = cluster.name;
  other.gpu = cluster.gpu;
  other.source = cluster.source;
  if (cluster.device_orders.empty()) return other;
  DeviceOrders orders = cluster.device_orders;
  if (std::ssize(orders) > nodes) orders.resize(static_cast<std::size_t>(nodes));
  return with_device_orders(std::move(other), std::move(orders));
}

std::vector<std::string> cluster_preset_names() {
  std::vector<std::string> names;
  for (const ClusterSpec& spec : cluster_specs()) names.push_back(spec.name);
  return names;
}

Outcome<Cluster> build_cluster(const std::string& preset, std::int64_t nodes) {
  const Outcome<ClusterSpec> spec = find_cluster_spec(preset);
  if (!spec) return spec.problems();
  return build_cluster(*spec, nodes);
}

}  // namespace cpfit
