#include "sim/plan/disturbance.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>

#include "model/cluster/topology.h"
#include "model/quantity/text.h"

namespace cpfit {

namespace {

std::string trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t"), end = text.find_last_not_of(" \t");
  return begin == std::string_view::npos ? std::string() : std::string(text.substr(begin, end - begin + 1));
}

struct Ends {
  std::string from, to, value;
};

/// "FROM -> TO=VALUE".
std::optional<Ends> split_ends(std::string_view text) {
  const std::size_t arrow = text.find("->"), equal = text.rfind('=');
  if (arrow == std::string_view::npos || equal == std::string_view::npos || equal < arrow) return std::nullopt;
  Ends ends{trimmed(text.substr(0, arrow)), trimmed(text.substr(arrow + 2, equal - arrow - 2)), trimmed(text.substr(equal + 1))};
  if (ends.from.empty() || ends.to.empty() || ends.value.empty()) return std::nullopt;
  return ends;
}

/// A number, or a share in percent.
std::optional<double> read_factor(const std::string& text) {
  if (text.ends_with("%")) {
    const Outcome<double> share = parse_share(text);
    return share.ok() ? std::optional(*share) : std::nullopt;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value) || value < 0.0) return std::nullopt;
  return value;
}

Problem bad_factor(const std::string& text, const std::string& what, const std::string& repair) {
  return {"disturbance.factor", "", fmt::format("'{}' is no {}", text, what), repair};
}

/// The graph by name, and the changes to it.
class Graph {
 public:
  explicit Graph(const Topology& topology) : topology_(topology) {
    for (std::size_t v = 0; v < topology.vertices().size(); ++v)
      vertex_.emplace(topology.vertices()[v].name, static_cast<std::int32_t>(v));
  }

  [[nodiscard]] Outcome<std::int32_t> vertex(const std::string& name) const {
    const auto found = vertex_.find(name);
    if (found != vertex_.end()) return found->second;
    std::vector<std::string> names;
    for (const Vertex& vertex : topology_.vertices()) names.push_back(vertex.name);
    const std::string near = nearest_name(name, names);
    return Problem{"disturbance.vertex", "", fmt::format("the topology has no '{}'", name),
                   near.empty() ? "`cpfit topology show` lists links by the names of their ends, e.g. " + names.front()
                                : fmt::format("did you mean '{}'?", near)};
  }

  /// All links of a name, of which a graph may hold several.
  [[nodiscard]] Outcome<std::vector<std::size_t>> links(const std::string& from, const std::string& to) const {
    const Outcome<std::int32_t> a = vertex(from), b = vertex(to);
    if (!a.ok() || !b.ok()) {
      Problems problems = a.problems();
      problems.insert(problems.end(), b.problems().begin(), b.problems().end());
      return problems;
    }
    std::vector<std::size_t> found;
    std::string others;
    constexpr std::size_t kListed = 80;  // letters
    for (std::size_t i = 0; i < topology_.links().size(); ++i) {
      const Link& link = topology_.links()[i];
      if (link.from != *a) continue;
      if (link.to == *b) found.push_back(i);
      const std::string& name = topology_.vertices()[static_cast<std::size_t>(link.to)].name;
      if (others.size() < kListed) others += (others.empty() ? "" : ", ") + name;
    }
    if (!found.empty()) return found;
    return Problem{"disturbance.link", "", fmt::format("there is no link {} -> {}", from, to),
                   others.empty() ? from + " has no outgoing link" : fmt::format("{} is linked to {}", from, others)};
  }

 private:
  const Topology& topology_;
  std::map<std::string, std::int32_t> vertex_;
};

/// Indices of the links that are gone: the dead ones, and those of NICs that lost their way out or in.
std::set<std::size_t> gone_links(const Topology& topology, const std::set<std::size_t>& dead) {
  const std::vector<Vertex>& vertices = topology.vertices();
  const auto is_switch = [&](std::int32_t vertex) {
    const VertexKind kind = vertices[static_cast<std::size_t>(vertex)].kind;
    return kind == VertexKind::kLeaf || kind == VertexKind::kSpine;
  };
  struct Ways {
    int out = 0, in = 0;
    bool lost = false;
  };
  std::map<std::int32_t, Ways> nics;
  for (std::size_t i = 0; i < topology.links().size(); ++i) {
    const Link& link = topology.links()[i];
    const bool lost = dead.contains(i);
    for (const auto& [nic, other, way] :
         {std::tuple(link.from, link.to, &Ways::out), std::tuple(link.to, link.from, &Ways::in)}) {
      if (vertices[static_cast<std::size_t>(nic)].kind != VertexKind::kNic || !is_switch(other)) continue;
      Ways& ways = nics[nic];
      if (!lost) ++(ways.*way);
      ways.lost = ways.lost || lost;
    }
  }
  std::set<std::size_t> gone = dead;
  for (std::size_t i = 0; i < topology.links().size(); ++i) {
    for (const std::int32_t end : {topology.links()[i].from, topology.links()[i].to}) {
      const auto found = nics.find(end);
      if (found != nics.end() && found->second.lost && (found->second.out == 0 || found->second.in == 0)) gone.insert(i);
    }
  }
  return gone;
}

Outcome<std::vector<Link>> changed_links(const Topology& topology, const std::vector<LinkChange>& changes) {
  const Graph graph(topology);
  std::vector<Link> links = topology.links();
  std::set<std::size_t> dead, touched;
  Problems problems;
  for (const LinkChange& change : changes) {
    const Outcome<std::vector<std::size_t>> found = graph.links(change.from, change.to);
    if (!found.ok()) {
      problems.insert(problems.end(), found.problems().begin(), found.problems().end());
      continue;
    }
    for (const std::size_t i : *found) {
      if (!touched.insert(i).second) {
        problems.push_back({"disturbance.link", "", fmt::format("the link {} -> {} is changed twice", change.from, change.to),
                            "give one factor for it"});
        break;
      }
      if (change.factor == 0.0) dead.insert(i);
      links[i].capacity = links[i].capacity * change.factor;
    }
  }
  if (!problems.empty()) return problems;
  const std::set<std::size_t> gone = dead.empty() ? dead : gone_links(topology, dead);
  std::vector<Link> left;
  for (std::size_t i = 0; i < links.size(); ++i) {
    if (!gone.contains(i)) left.push_back(links[i]);
  }
  return left;
}

/// A GPU whose traffic to other hosts passes the vertex: itself, or one whose NIC it is; -1 when there is none.
std::int64_t gpu_behind(const Topology& topology, std::int32_t vertex) {
  for (std::size_t gpu = 0; gpu < topology.gpus().size(); ++gpu) {
    const auto rank = static_cast<std::int64_t>(gpu);
    if (topology.gpus()[gpu] == vertex || topology.nic_of(rank) == vertex) return rank;
  }
  return -1;
}

/// Links that the job passes; a NIC at an end cuts off what lies between it and its GPU.
Outcome<std::vector<std::int32_t>> route_of(const Topology& topology, const SecondJob& job) {
  const Graph graph(topology);
  const Outcome<std::int32_t> from = graph.vertex(job.from), to = graph.vertex(job.to);
  if (!from.ok()) return from.problems();
  if (!to.ok()) return to.problems();
  for (const auto& [vertex, name] : {std::pair(*from, &job.from), std::pair(*to, &job.to)}) {
    const VertexKind kind = topology.vertices()[static_cast<std::size_t>(vertex)].kind;
    if (kind != VertexKind::kGpu && kind != VertexKind::kNic) {
      return Problem{"disturbance.vertex", "",
                     fmt::format("{} is a {}: a job sends from a GPU or NIC to another", *name, name_of(kind)),
                     "name GPUs or NICs, e.g. \"" + topology.vertices()[static_cast<std::size_t>(topology.gpus().front())].name +
                         " -> " + topology.vertices()[static_cast<std::size_t>(topology.gpus().back())].name + "=25 GB/s\""};
    }
  }
  const std::int64_t a = gpu_behind(topology, *from), b = gpu_behind(topology, *to);
  std::vector<std::int32_t> route;
  if (a >= 0 && b >= 0 && a != b) route = topology.route(a, b);
  const auto link = [&](std::int32_t index) -> const Link& { return topology.links()[static_cast<std::size_t>(index)]; };
  const auto begin = std::find_if(route.begin(), route.end(), [&](std::int32_t i) { return link(i).from == *from; });
  const auto last = std::find_if(begin, route.end(), [&](std::int32_t i) { return link(i).to == *to; });
  if (last == route.end()) {
    return Problem{"disturbance.route", "", fmt::format("traffic from {} to {} has no route there", job.from, job.to),
                   "name two GPUs, or NICs of two hosts that GPUs use (`cpfit topology show` prints routes)"};
  }
  return std::vector<std::int32_t>(begin, last + 1);
}

}  // namespace

Outcome<LinkChange> parse_link_change(const std::string& text) {
  const std::optional<Ends> ends = split_ends(text);
  if (!ends) {
    return Problem{"disturbance.syntax", "", fmt::format("'{}' is not FROM -> TO=FACTOR", text),
                   "write e.g. \"n0.nic3 -> leaf3=0.5\" for half its capacity, =0 for a dead link"};
  }
  const std::optional<double> factor = read_factor(ends->value);
  if (!factor) return bad_factor(ends->value, "share of a link's capacity", "write a number from 0 (dead) upward, e.g. 0.5");
  return LinkChange{ends->from, ends->to, *factor};
}

Outcome<SecondJob> parse_second_job(const std::string& text) {
  const std::optional<Ends> ends = split_ends(text);
  if (!ends) {
    return Problem{"disturbance.syntax", "", fmt::format("'{}' is not FROM -> TO=RATE", text),
                   "write e.g. \"n0.gpu1 -> n1.gpu1=25 GB/s\""};
  }
  const Outcome<BytesPerSecond> rate = parse_rate(ends->value);
  if (!rate.ok()) return rate.problems();
  return SecondJob{ends->from, ends->to, *rate};
}

Outcome<schedule::SlowRank> parse_slow_rank(const std::string& text) {
  const std::size_t equal = text.find('=');
  const std::string name = trimmed(text.substr(0, equal));
  schedule::SlowRank slow;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), slow.rank);
  if (equal == std::string::npos || name.empty() || error != std::errc() || end != name.data() + name.size() || slow.rank < 0) {
    return Problem{"disturbance.syntax", "", fmt::format("'{}' is not RANK=FACTOR", text),
                   "write e.g. \"3=1.2\": the kernels of global rank 3 take 1.2 times as long"};
  }
  const std::string value = trimmed(text.substr(equal + 1));
  const std::optional<double> factor = read_factor(value);
  if (!factor || *factor == 0.0)
    return bad_factor(value, "factor of a kernel's time", "write a number above 0, e.g. 1.2 for 20 % longer");
  slow.factor = *factor;
  return slow;
}

Outcome<Cluster> disturbed(const Cluster& cluster, const Disturbance& disturbance) {
  Outcome<std::vector<Link>> changed = changed_links(*cluster.topology, disturbance.links);
  if (!changed.ok()) return changed.problems();
  std::vector<Link> links = std::move(changed).value();
  const Topology changed_topology(cluster.topology->vertices(), links);
  Problems problems;
  for (const SecondJob& job : disturbance.jobs) {
    const Outcome<std::vector<std::int32_t>> route = route_of(changed_topology, job);
    if (!route.ok()) {
      problems.insert(problems.end(), route.problems().begin(), route.problems().end());
      continue;
    }
    for (const std::int32_t index : *route) {
      Link& link = links[static_cast<std::size_t>(index)];
      if (link.capacity <= job.rate) {
        const auto name = [&](std::int32_t vertex) { return changed_topology.vertices()[static_cast<std::size_t>(vertex)].name; };
        problems.push_back({"disturbance.rate", "",
                            fmt::format("a job from {} to {} at {} leaves nothing of the link {} -> {}, which has {}", job.from,
                                        job.to, print_rate(job.rate), name(link.from), name(link.to), print_rate(link.capacity)),
                            "give it less than that"});
        break;
      }
      link.capacity = link.capacity - job.rate;
    }
  }
  if (!problems.empty()) return problems;
  Cluster result = cluster;
  result.topology = std::make_shared<Topology>(cluster.topology->vertices(), std::move(links), cluster.topology->gpus());
  result.resized = nullptr;  // a disturbance is of this graph
  return result;
}

}  // namespace cpfit
