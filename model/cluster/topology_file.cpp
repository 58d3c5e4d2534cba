#include "model/cluster/topology_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "model/cluster/cluster_spec.h"
#include "model/cluster/topology_build.h"
#include "model/quantity/text.h"
#include "model/quantity/text_file.h"

namespace cpfit {
namespace {

using nlohmann::json;

constexpr VertexKind kKinds[] = {VertexKind::kGpu, VertexKind::kNvSwitch, VertexKind::kPcieSwitch, VertexKind::kCpu,
                                 VertexKind::kNic, VertexKind::kLeaf,     VertexKind::kSpine};
constexpr LinkClass kClasses[] = {LinkClass::kNvlink, LinkClass::kXgmi,  LinkClass::kPcie, LinkClass::kSocket,
                                  LinkClass::kNic,    LinkClass::kSpine, LinkClass::kLocal};

constexpr std::int64_t kMostCount = 1'000'000;  // hosts, links of a bundle, ports, as a person may write them

/// A place in the file and the problems found so far, shared by everything below it.
class Place {
 public:
  Place(std::string path, Problems& problems) : path_(std::move(path)), problems_(&problems) {}  // "file: " is the file's root
  [[nodiscard]] Place operator/(const std::string& key) const {
    return {path_ + (path_.ends_with(' ') ? "" : ".") + key, *problems_};
  }
  [[nodiscard]] Place operator[](std::size_t index) const { return {fmt::format("{}[{}]", path_, index), *problems_}; }
  void problem(const std::string& code, const std::string& message, const std::string& repair = "") const {
    problems_->push_back({"topology." + code, where(), message, repair});
  }
  void problem(const Problem& found) const { problems_->push_back({found.code, where(), found.message, found.repair}); }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string where() const { return path_.ends_with(": ") ? path_.substr(0, path_.size() - 2) : path_; }

 private:
  std::string path_;
  Problems* problems_;
};

void only_keys(const json& object, const Place& place, const std::vector<std::string>& known) {
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string nearest = nearest_name(key, known);
    (place / key)
        .problem(
            "unknown_key", fmt::format("unknown key '{}'", key),
            nearest.empty() ? fmt::format("known keys: {}", fmt::join(known, ", ")) : fmt::format("did you mean '{}'?", nearest));
  }
}

std::string text_of(const json& object, const std::string& key, const Place& place, bool required) {
  if (!object.contains(key)) {
    if (required) place.problem("missing_key", fmt::format("'{}' is missing", key), fmt::format("add \"{}\": \"...\"", key));
    return "";
  }
  if (!object[key].is_string()) {
    (place / key).problem("type", fmt::format("'{}' must be a string", key));
    return "";
  }
  return object[key].get<std::string>();
}

std::int64_t count_of(const json& object, const std::string& key, const Place& place, std::int64_t otherwise, std::int64_t low) {
  if (!object.contains(key)) return otherwise;
  if (!object[key].is_number_integer() || object[key].get<std::int64_t>() < low || object[key].get<std::int64_t>() > kMostCount) {
    (place / key).problem("value", fmt::format("'{}' must be a whole number from {} to {}", key, low, kMostCount));
    return otherwise;
  }
  return object[key].get<std::int64_t>();
}

BytesPerSecond rate_of(const json& object, const Place& place) {
  const std::string text = text_of(object, "rate", place, true);
  if (text.empty()) return {};
  const Outcome<BytesPerSecond> rate = parse_rate(text);
  if (!rate) {
    (place / "rate").problem(rate.problems().front());
    return {};
  }
  if (!(rate->value() > 0))
    (place / "rate").problem("bandwidth", fmt::format("a rate of {} carries nothing", text), "give a rate above zero");
  return *rate;
}

Seconds latency_of(const json& object, const Place& place) {
  const std::string text = text_of(object, "latency", place, false);
  if (text.empty()) return {};
  const Outcome<Seconds> time = parse_time(text);
  if (!time) {
    (place / "latency").problem(time.problems().front());
    return {};
  }
  return *time;
}

template <class Values>
auto named(const Values& values, const std::string& name, const Place& place, const std::string& what) {
  std::vector<std::string> names;
  for (const auto value : values) {
    names.emplace_back(name_of(value));
    if (names.back() == name) return value;
  }
  const std::string nearest = nearest_name(name, names);
  place.problem("value", fmt::format("'{}' is no {}", name, what),
                nearest.empty() ? fmt::format("one of {}", fmt::join(names, ", ")) : fmt::format("did you mean '{}'?", nearest));
  return values[0];
}

const json& list_of(const json& object, const std::string& key, const Place& place) {
  static const json kNone = json::array();
  if (object.contains(key) && object[key].is_array()) return object[key];
  place.problem("missing_key", fmt::format("a list '{}' is missing", key), fmt::format("add \"{}\": [...]", key));
  return kNone;
}

/// Vertices and links of a host or of a whole graph.
struct Parts {
  std::vector<Vertex> vertices;
  std::vector<Link> links;
  std::vector<NodeTemplate::Port> ports;  // hosts only
};

void read_vertices(const json& object, const Place& place, bool whole, Parts& parts, std::map<std::string, std::int32_t>& ids) {
  std::map<std::pair<VertexKind, std::int32_t>, std::int32_t> counted;
  const json& list = list_of(object, "vertices", place);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Place here = (place / "vertices")[i];
    if (!list[i].is_object()) {
      here.problem("type", "a vertex must be an object");
      continue;
    }
    only_keys(list[i], here,
              whole ? std::vector<std::string>{"id", "kind", "node", "rail"}
                    : std::vector<std::string>{"id", "kind", "rate", "ports", "rail"});
    Vertex vertex;
    vertex.name = text_of(list[i], "id", here, true);
    vertex.kind = named(kKinds, text_of(list[i], "kind", here, true), here / "kind", "kind of vertex");
    const bool in_host = vertex.kind != VertexKind::kLeaf && vertex.kind != VertexKind::kSpine;
    if (!whole && !in_host) here.problem("value", "a host holds no leaf and no spine", "describe them under \"fabric\"");
    vertex.node = whole ? static_cast<std::int32_t>(count_of(list[i], "node", here, -1, -1)) : 0;
    if (whole && vertex.node < 0 && in_host && vertex.kind != VertexKind::kNvSwitch) {
      here.problem("missing_key", fmt::format("'{}' needs the host it is in", vertex.name),
                   "add \"node\": 0 (hosts count from 0)");
    }
    vertex.index = counted[{vertex.kind, vertex.node}]++;
    const bool on_rail = vertex.kind == VertexKind::kNic || vertex.kind == VertexKind::kLeaf;
    vertex.rail =
        static_cast<std::int32_t>(count_of(list[i], "rail", here, vertex.kind == VertexKind::kNic ? vertex.index : -1, -1));
    if (!on_rail) vertex.rail = -1;
    if (!whole && vertex.kind == VertexKind::kNic) {
      const auto ports = static_cast<std::int32_t>(count_of(list[i], "ports", here, 1, 1));
      parts.ports.push_back({rate_of(list[i], here) * ports, ports});
    }
    if (!ids.try_emplace(vertex.name, static_cast<std::int32_t>(parts.vertices.size())).second) {
      here.problem("duplicate_id", fmt::format("two vertices are called '{}'", vertex.name), "give each its own id");
    }
    parts.vertices.push_back(std::move(vertex));
  }
}

std::int32_t end_of(const std::string& id, const std::map<std::string, std::int32_t>& ids, const Place& place) {
  const auto found = ids.find(id);
  if (found != ids.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [name, unused] : ids) names.push_back(name);
  const std::string nearest = nearest_name(id, names);
  place.problem("unknown_vertex", fmt::format("no vertex is called '{}'", id),
                nearest.empty() ? "" : fmt::format("did you mean '{}'?", nearest));
  return -1;
}

void read_links(const json& object, const Place& place, Parts& parts, const std::map<std::string, std::int32_t>& ids) {
  const json& list = list_of(object, "links", place);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Place here = (place / "links")[i];
    const json& entry = list[i];
    if (!entry.is_object()) {
      here.problem("type", "a link must be an object");
      continue;
    }
    only_keys(entry, here, {"between", "from", "to", "class", "rate", "count", "latency"});
    std::string from, to;
    const bool both = entry.contains("between");
    if (both) {
      const json& ends = entry["between"];
      if (ends.is_array() && ends.size() == 2 && ends[0].is_string() && ends[1].is_string()) {
        from = ends[0].get<std::string>();
        to = ends[1].get<std::string>();
      } else {
        (here / "between").problem("type", "\"between\" must name two vertices", "write \"between\": [\"gpu0\", \"nvsw0\"]");
        continue;
      }
    } else {
      from = text_of(entry, "from", here, true);
      to = text_of(entry, "to", here, true);
    }
    const LinkClass link_class = named(kClasses, text_of(entry, "class", here, true), here / "class", "class of link");
    const auto lanes = static_cast<std::int32_t>(count_of(entry, "count", here, 1, 1));
    const BytesPerSecond capacity = rate_of(entry, here) * lanes;
    const Seconds latency = latency_of(entry, here);
    const std::int32_t a = end_of(from, ids, here), b = end_of(to, ids, here);
    if (a < 0 || b < 0) continue;
    if (a == b) {
      here.problem("value", fmt::format("'{}' is linked to itself", from));
      continue;
    }
    if (both) {
      join(parts.links, a, b, link_class, capacity, latency, lanes);
    } else {
      parts.links.push_back({a, b, link_class, capacity, latency, lanes});
    }
  }
}

Parts read_parts(const json& object, const Place& place, bool whole) {
  Parts parts;
  if (!object.is_object()) {
    place.problem("type", "must be an object with \"vertices\" and \"links\"");
    return parts;
  }
  only_keys(object, place, {"vertices", "links"});
  std::map<std::string, std::int32_t> ids;
  read_vertices(object, place, whole, parts, ids);
  read_links(object, place, parts, ids);
  merge_parallel_devices(parts.vertices, parts.links, parts.ports);
  return parts;
}

/// "8", "400 Gb/s", "true": as override_value takes it.
std::string written(const json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

/// GPUs per host, the same on every host; 0 with a problem otherwise.
std::int32_t gpus_per_host(const std::vector<Vertex>& vertices, const Place& place, std::int32_t& hosts) {
  std::map<std::int32_t, std::int32_t> gpus;
  for (const Vertex& vertex : vertices) {
    if (vertex.node >= 0) gpus[vertex.node] += vertex.kind == VertexKind::kGpu ? 1 : 0;
  }
  hosts = static_cast<std::int32_t>(gpus.size());
  for (const auto& [host, count] : gpus) {
    if (count == 0 || count != gpus.begin()->second) {
      place.problem("gpus",
                    fmt::format("host {} has {} GPUs, host {} has {}", host, count, gpus.begin()->first, gpus.begin()->second),
                    "every host needs the same number of GPUs, at least one");
      return 0;
    }
  }
  if (gpus.empty() || gpus.rbegin()->first + 1 != hosts) {
    place.problem("gpus", "hosts must be numbered from 0 without gaps, each with a GPU",
                  "list the GPUs under \"vertices\" with \"kind\": \"gpu\"");
    return 0;
  }
  return gpus.begin()->second;
}

Outcome<Cluster> finished(Cluster cluster, Problems problems) {
  if (!problems.empty()) return problems;
  std::int32_t domain = 0;
  while (domain < cluster.gpus() && cluster.topology->scale_up_component(domain) == cluster.topology->scale_up_component(0))
    ++domain;
  cluster.scale_up_domain = domain;
  return cluster;
}

Outcome<Cluster> from_base(const json& root, const Place& place, const std::string& name, std::int64_t nodes,
                           Problems& problems) {
  Outcome<ClusterSpec> spec = find_cluster_spec(text_of(root, "base", place, true));
  if (!spec) {
    for (const Problem& problem : spec.problems()) (place / "base").problem(problem);
    return problems;
  }
  if (root.contains("set")) {
    const Place set = place / "set";
    if (!root["set"].is_object()) {
      set.problem("type", "\"set\" must be an object of values");
    } else {
      for (const auto& [key, value] : root["set"].items()) {
        for (const Problem& problem : override_value(spec.value(), key, written(value), (set / key).path()))
          problems.push_back(problem);
      }
    }
  }
  const std::int64_t written_nodes = count_of(root, "nodes", place, 1, 1);
  if (!problems.empty()) return problems;
  Outcome<Cluster> cluster = build_cluster(*spec, nodes > 0 ? nodes : written_nodes);
  if (!cluster) return cluster;
  if (!name.empty()) cluster.value().name = name;
  cluster.value().source = fmt::format("{} over {}: {}", place.where(), spec->name, spec->source);
  return cluster;
}

Outcome<Cluster> from_host(const json& root, const Place& place, Cluster cluster, std::int64_t nodes, Problems& problems) {
  Parts parts = read_parts(root["host"], place / "host", false);
  std::int32_t hosts = 0;
  cluster.gpus_per_node = gpus_per_host(parts.vertices, place / "host", hosts);
  cluster.nodes = nodes > 0 ? nodes : count_of(root, "nodes", place, 1, 1);
  NodeTemplate host;
  host.vertices = std::move(parts.vertices);
  host.links = std::move(parts.links);
  host.nic_ports = std::move(parts.ports);
  if (root.contains("domain")) {
    const Place domain = place / "domain";
    only_keys(root["domain"], domain, {"nodes", "rate", "count", "latency"});
    host.domain_nodes = static_cast<std::int32_t>(count_of(root["domain"], "nodes", domain, 1, 1));
    host.domain_lanes = static_cast<std::int32_t>(count_of(root["domain"], "count", domain, 1, 1));
    host.domain_uplink = rate_of(root["domain"], domain) * host.domain_lanes;
    host.domain_latency = latency_of(root["domain"], domain);
  }
  ClusterSpec spec;  // carries the fabric: the same names as in a preset
  if (root.contains("fabric")) {
    static const std::set<std::string> kFabricKeys = {"rails",       "nodes_per_unit", "oversubscription",
                                                      "spines",      "nodes_per_pod",  "pod_oversubscription",
                                                      "nic_latency", "switch_latency"};
    for (const auto& [key, value] : root["fabric"].items()) {
      const Place here = place / "fabric" / key;
      if (!kFabricKeys.contains(key)) {
        here.problem("unknown_key", fmt::format("a fabric has no value '{}'", key),
                     fmt::format("known values: {}", fmt::join(kFabricKeys, ", ")));
        continue;
      }
      for (const Problem& problem : override_value(spec, key, written(value), here.path())) problems.push_back(problem);
    }
  }
  if (cluster.gpus_per_node > 0 && cluster.nodes * cluster.gpus_per_node > 131072) {
    place.problem("nodes", fmt::format("{} hosts of {} GPUs are more than 131072 GPUs", cluster.nodes, cluster.gpus_per_node));
  }
  if (!problems.empty()) return problems;
  cluster.topology = assemble(host, spec.fabric, cluster.nodes);
  return finished(std::move(cluster), problems);
}

Outcome<Cluster> from_graph(const json& root, const Place& place, Cluster cluster, std::int64_t nodes, Problems& problems) {
  Parts parts = read_parts(root["graph"], place / "graph", true);
  std::int32_t hosts = 0;
  cluster.gpus_per_node = gpus_per_host(parts.vertices, place / "graph", hosts);
  cluster.nodes = hosts;
  if (nodes > 0 && nodes != hosts) {
    place.problem("nodes", fmt::format("the file describes {} hosts one by one, {} were asked for", hosts, nodes),
                  fmt::format("ask for {}, or describe one host under \"host\"", hosts));
  }
  std::int32_t last = 0;
  for (const Vertex& vertex : parts.vertices) {
    if (vertex.kind != VertexKind::kGpu) continue;
    if (vertex.node < last) place.problem("order", "GPUs must be listed host by host: rank order follows the list");
    last = vertex.node;
  }
  if (!problems.empty()) return problems;
  cluster.topology = std::make_shared<const Topology>(std::move(parts.vertices), std::move(parts.links));
  return finished(std::move(cluster), problems);
}

/// "file.json:12:7" of a byte offset.
std::string position(const std::string& where, const std::string& text, std::size_t byte) {
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(byte, text.size()));
  const auto line = 1 + std::count(text.begin(), end, '\n');
  const std::size_t start = byte == 0 ? std::string::npos : text.rfind('\n', std::min(byte, text.size()) - 1);
  const std::size_t column = start == std::string::npos ? byte : byte - start - 1;
  return fmt::format("{}:{}:{}", where, line, std::max<std::size_t>(column, 1));
}

}  // namespace

Outcome<Cluster> read_topology(const std::string& text, const std::string& where, std::int64_t nodes) {
  if (json_nesting(text) > kMostNesting)
    return Problem{"topology.syntax", where, "it is nested deeper than any topology file", "see docs/topology.md for the format"};
  json root;
  try {
    root = json::parse(text);
  } catch (const json::parse_error& error) {
    return Problem{"topology.syntax", position(where, text, error.byte), "this is not JSON",
                   "check for a missing comma, quote or bracket just before"};
  } catch (const json::exception&) {  // a number beyond double: the library gives no position
    return Problem{"topology.syntax", where, "a number is beyond what JSON readers hold", "write it smaller"};
  }
  Problems problems;
  const Place place(where + ": ", problems);
  if (!root.is_object() || !root.contains("schema") || root["schema"] != kTopologySchema) {
    place.problem("schema", fmt::format("the file does not say \"schema\": \"{}\"", kTopologySchema),
                  "other tools' files are read by `cpfit topology import`");
    return problems;
  }
  const int forms = static_cast<int>(root.contains("base")) + static_cast<int>(root.contains("host")) +
                    static_cast<int>(root.contains("graph"));
  if (forms != 1) {
    place.problem("form", fmt::format("{} of \"base\", \"host\" and \"graph\" are there", forms),
                  "exactly one says what the cluster is");
    return problems;
  }
  const std::string name = text_of(root, "name", place, false);
  if (root.contains("base")) {
    only_keys(root, place, {"schema", "name", "source", "base", "set", "nodes"});
    return from_base(root, place, name, nodes, problems);
  }
  only_keys(root, place, {"schema", "name", "source", "gpu", "nodes", "host", "domain", "fabric", "graph"});
  Cluster cluster;
  cluster.name = name.empty() ? where : name;
  cluster.source = text_of(root, "source", place, false);
  if (cluster.source.empty()) cluster.source = where;
  const std::string gpu_name = text_of(root, "gpu", place, true);
  if (!gpu_name.empty()) {
    const Outcome<Gpu> gpu = find_gpu(gpu_name);
    if (gpu) {
      cluster.gpu = *gpu;
    } else {
      for (const Problem& problem : gpu.problems()) (place / "gpu").problem(problem);
    }
  }
  return root.contains("host") ? from_host(root, place, std::move(cluster), nodes, problems)
                               : from_graph(root, place, std::move(cluster), nodes, problems);
}

std::string write_topology(const Cluster& cluster) {
  const Topology& topology = *cluster.topology;
  json vertices = json::array(), links = json::array();
  for (const Vertex& vertex : topology.vertices()) {
    json entry = {{"id", vertex.name}, {"kind", name_of(vertex.kind)}};
    if (vertex.node >= 0) entry["node"] = vertex.node;
    if (vertex.rail >= 0 || vertex.kind == VertexKind::kNic) entry["rail"] = vertex.rail;
    vertices.push_back(std::move(entry));
  }
  for (const Link& link : topology.links()) {
    links.push_back({{"from", topology.vertices()[static_cast<std::size_t>(link.from)].name},
                     {"to", topology.vertices()[static_cast<std::size_t>(link.to)].name},
                     {"class", name_of(link.link_class)},
                     {"rate", fmt::format("{} B/s", link.capacity.value() / link.lanes)},
                     {"count", link.lanes},
                     {"latency", fmt::format("{} s", link.latency.value())}});
  }
  json root = {{"schema", kTopologySchema}, {"name", cluster.name}, {"source", cluster.source}, {"gpu", cluster.gpu.name}};
  root["graph"] = {{"vertices", std::move(vertices)}, {"links", std::move(links)}};
  return root.dump(1) + "\n";
}

Outcome<Cluster> load_cluster(const std::string& path, std::int64_t nodes) {
  const Outcome<std::string> text = read_text_file(path, kMostTableBytes, "topology.unreadable");
  if (!text) return text.problems();
  return read_topology(*text, path, nodes);
}

}  // namespace cpfit
