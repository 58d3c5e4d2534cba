#include "model/cluster/topology_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <tuple>

#include "model/cluster/member_network.h"
#include "model/quantity/index.h"
#include "model/quantity/text.h"

namespace cpfit {
namespace {

constexpr std::size_t kTextColumns = 100;
constexpr double kMuchFaster = 1.2;  // an alternative below this gain is not worth a sentence

/// Lanes of the scale-up way without a relaying GPU; 0 when there is none.
std::int32_t scale_up_lanes(const Topology& topology, std::int64_t a, std::int64_t b, bool& xgmi) {
  const std::vector<std::int32_t> route = topology.route(a, b);
  std::int32_t lanes = 0;
  for (std::size_t i = 0; i < route.size(); ++i) {
    const Link& link = topology.links()[at(route[i])];
    if (!is_scale_up(link.link_class)) return 0;
    if (i + 1 < route.size() && topology.vertices()[at(link.to)].kind == VertexKind::kGpu) return 0;
    lanes = lanes == 0 ? link.lanes : std::min(lanes, link.lanes);
    xgmi = link.link_class == LinkClass::kXgmi;
  }
  return lanes;
}

/// Vertices that stand for a host bridge: a PCIe switch joined to a CPU by a local link.
std::vector<bool> host_bridges(const Topology& topology) {
  std::vector<bool> found(topology.vertices().size());
  for (const Link& link : topology.links()) {
    found[at(link.from)] = found[at(link.from)] || (link.link_class == LinkClass::kLocal &&
                                                    topology.vertices()[at(link.from)].kind == VertexKind::kPcieSwitch &&
                                                    topology.vertices()[at(link.to)].kind == VertexKind::kCpu);
  }
  return found;
}

std::string host_code(const Topology& topology, const std::vector<bool>& bridges, std::int32_t from, std::int32_t to) {
  const std::vector<std::int32_t> path = topology.host_path(from, to);
  if (path.empty()) return "-";
  int cpus = 0, switches = 0;
  bool bridge = false;
  for (std::size_t i = 0; i + 1 < path.size(); ++i) {
    const std::int32_t vertex = topology.links()[at(path[i])].to;
    const VertexKind kind = topology.vertices()[at(vertex)].kind;
    bridge = bridge || bridges[at(vertex)];
    cpus += kind == VertexKind::kCpu ? 1 : 0;
    switches += kind == VertexKind::kPcieSwitch ? 1 : 0;
  }
  if (cpus > 1) return "SYS";
  if (cpus == 1) return "NODE";
  if (bridge) return "PHB";
  return switches > 1 ? "PXB" : "PIX";
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

/// Columns padded to their widest cell; the first row is the header.
std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> width;
  for (const auto& row : rows) {
    width.resize(std::max(width.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += fmt::format("{:<{}}{}", row[i], width[i], i + 1 < row.size() ? "  " : "");
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

RingAlternative alternative(const Cluster& cluster, std::string name, std::int32_t tp, std::int32_t cp, GroupShape ring,
                            GroupShape tensor) {
  RingAlternative made{std::move(name), tp, cp, ring, tensor, {}, {}};
  made.ring_rate = price_group(cluster, ring).ring.rate;
  made.tensor_rate = price_group(cluster, tensor).collective_rate;
  return made;
}

}  // namespace

ConnectionMatrix connection_matrix(const Topology& topology, std::int32_t node) {
  struct Device {
    std::int32_t vertex;
    std::int64_t rank;  // -1 for a NIC
  };
  std::vector<Device> devices;
  for (std::size_t rank = 0; rank < topology.gpus().size(); ++rank) {
    const std::int32_t vertex = topology.gpus()[rank];
    if (topology.vertices()[at(vertex)].node == node) devices.push_back({vertex, static_cast<std::int64_t>(rank)});
  }
  for (std::size_t v = 0; v < topology.vertices().size(); ++v) {
    const Vertex& vertex = topology.vertices()[v];
    if (vertex.node == node && vertex.kind == VertexKind::kNic) devices.push_back({static_cast<std::int32_t>(v), -1});
  }
  const std::vector<bool> bridges = host_bridges(topology);
  ConnectionMatrix matrix;
  for (const Device& device : devices) {
    const Vertex& vertex = topology.vertices()[at(device.vertex)];
    matrix.names.push_back(upper(name_of(vertex.kind)) + std::to_string(vertex.index));
  }
  for (const Device& a : devices) {
    std::vector<std::string>& row = matrix.codes.emplace_back();
    for (const Device& b : devices) {
      bool xgmi = false;
      const std::int32_t lanes =
          a.rank >= 0 && b.rank >= 0 && a.rank != b.rank ? scale_up_lanes(topology, a.rank, b.rank, xgmi) : 0;
      if (a.vertex == b.vertex) {
        row.emplace_back("X");
      } else if (lanes > 0) {
        row.push_back(fmt::format("{}{}", xgmi ? "XGMI" : "NV", lanes));
      } else {
        row.push_back(host_code(topology, bridges, a.vertex, b.vertex));
      }
    }
  }
  return matrix;
}

std::string print_matrix(const ConnectionMatrix& matrix) {
  const std::size_t count = matrix.names.size();
  std::size_t name_width = 0;
  for (const std::string& name : matrix.names) name_width = std::max(name_width, name.size());
  std::string text;
  for (std::size_t begin = 0; begin < count;) {
    std::size_t end = begin, used = name_width;
    for (; end < count; ++end) {
      std::size_t width = matrix.names[end].size();
      for (const auto& row : matrix.codes) width = std::max(width, row[end].size());
      if (end > begin && used + 2 + width > kTextColumns) break;
      used += 2 + width;
    }
    std::vector<std::vector<std::string>> rows(1, {""});
    const auto part = [&](const std::vector<std::string>& cells) {
      return std::pair{cells.begin() + static_cast<std::ptrdiff_t>(begin), cells.begin() + static_cast<std::ptrdiff_t>(end)};
    };
    rows[0].insert(rows[0].end(), part(matrix.names).first, part(matrix.names).second);
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<std::string>& row = rows.emplace_back(1, matrix.names[i]);
      row.insert(row.end(), part(matrix.codes[i]).first, part(matrix.codes[i]).second);
    }
    text += (begin > 0 ? "\n" : "") + table(rows);
    begin = end;
  }
  return text;
}

std::vector<TopologyLink> link_table(const Topology& topology) {
  using Likeness = std::tuple<LinkClass, VertexKind, VertexKind, double, std::int32_t, double>;
  std::map<Likeness, std::size_t> known;
  std::vector<TopologyLink> rows;
  for (const Link& link : topology.links()) {
    const Vertex &from = topology.vertices()[at(link.from)], &to = topology.vertices()[at(link.to)];
    const Likeness likeness{link.link_class, from.kind, to.kind, link.capacity.value(), link.lanes, link.latency.value()};
    const auto [where, fresh] = known.try_emplace(likeness, rows.size());
    if (fresh)
      rows.push_back(
          {link.link_class, from.kind, to.kind, link.capacity, link.lanes, link.latency, 0, from.name + " -> " + to.name});
    ++rows[where->second].count;
  }
  return rows;
}

std::string print_links(const std::vector<TopologyLink>& rows) {
  std::vector<std::vector<std::string>> lines{{"class", "from", "to", "one direction", "lanes", "latency", "links", "first"}};
  for (const TopologyLink& row : rows) {
    lines.push_back({std::string(name_of(row.link_class)), std::string(name_of(row.from)), std::string(name_of(row.to)),
                     print_rate(row.capacity), std::to_string(row.lanes), print_time(row.latency), std::to_string(row.count),
                     row.example});
  }
  return table(lines);
}

std::string print_ring(const Cluster& cluster, GroupShape shape) {
  std::vector<std::vector<std::string>> lines{{"hop", "share", "slowest link", "flows", "latency", "route"}};
  for (const RingHop& hop : ring_hops(cluster, shape)) {
    lines.push_back({fmt::format("rank {} -> {}", hop.from, hop.to), print_rate(hop.network.rate), hop.network.link,
                     std::to_string(hop.network.flows), print_time(hop.network.latency),
                     (hop.network.crosses_node ? "crosses nodes, " : "") + route_text(*cluster.topology, hop.from, hop.to)});
  }
  return table(lines);
}

std::optional<RingWarning> ring_warning(const Cluster& cluster, std::int32_t tp, std::int32_t cp) {
  if (cp < 2 || std::int64_t{tp} * cp > cluster.gpus()) return std::nullopt;
  const GroupNetwork now = price_group(cluster, {tp, cp});
  RingWarning warning{now.ring, now.inner_hop, {}, ""};
  const auto consider = [&](RingAlternative other) {
    if (other.ring_rate.value() > kMuchFaster * now.ring.rate.value()) warning.alternatives.push_back(std::move(other));
  };
  if (tp > 1) consider(alternative(cluster, "cp before tp in the rank order", tp, cp, {1, cp}, {cp, tp}));
  const std::int32_t domain = std::max(cluster.scale_up_domain, cluster.gpus_per_node);
  for (std::int32_t less = tp / 2; less >= 1; less /= 2) {
    if (less * cp > domain) continue;
    consider(alternative(cluster, fmt::format("tp={} (the freed GPUs on dp)", less), less, cp, {less, cp}, {1, less}));
    break;
  }
  const bool uneven = warning.usual.rate.value() > kMuchFaster * warning.slow.rate.value();
  if (!uneven && warning.alternatives.empty()) return std::nullopt;

  warning.sentence =
      fmt::format("The cp={} ring at stride {} passes {} at {}", cp, tp, warning.slow.link, print_rate(warning.slow.rate));
  if (uneven) warning.sentence += fmt::format(", its other hops run at {}", print_rate(warning.usual.rate));
  if (now.rings_leaving > 1) warning.sentence += fmt::format(" ({} rings leave a domain at once)", now.rings_leaving);
  warning.sentence += ".";
  for (const RingAlternative& other : warning.alternatives) {
    warning.sentence += fmt::format(" With {} every hop runs at {} or more", other.name, print_rate(other.ring_rate));
    if (other.tp > 1) warning.sentence += fmt::format("; tp collectives then run at {}", print_rate(other.tensor_rate));
    warning.sentence += ".";
  }
  if (warning.alternatives.empty()) warning.sentence += " No other rank order spares it.";
  return warning;
}

}  // namespace cpfit
