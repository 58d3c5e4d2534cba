#include "calibrate/fit/fit_collectives.h"

#include <cstdlib>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

#include "model/cluster/cluster_spec.h"
#include "model/cluster/member_network.h"
#include "model/rates/group_rate.h"

namespace cpfit {

namespace {

constexpr std::size_t kFewestSizes = 6;  // below, a group says too little for a curve of its own

using CollectiveKey = std::tuple<std::string, CollectiveKind, CollectiveForm, std::int64_t>;

/// Bus rate of a node's NICs where the published inter-node tables ran, bytes/s; 0 for clusters we cannot place. The Hugging
/// Face rows come from a shared cluster and spread by ten times: scored, not fitted.
double fabric_rate(const std::string& software) {
  if (software.find("EFA 3200") != std::string::npos || software.find("EFA v4") != std::string::npos) return 400e9;
  if (software.find("OCI BM.GPU.H100.8") != std::string::npos) return 400e9;
  return 0.0;
}

// No NIC gives more than this share of its raw rate.
constexpr double kLargestFabricShare = 0.97;

/// Points of one curve by the version of the library that ran them: where NCCL changes protocol and algorithm moves from one
/// version to the next, so versions are never mixed in one curve.
using CollectiveGroups = std::map<CollectiveKey, std::map<std::string, std::vector<CollectivePoint>>>;

/// Does the switch of this link add (NVLink SHARP, from the third NVSwitch on)? It adds floating-point numbers only: sums of
/// 8-bit integers go another way, up to 1.3 times as long, and have a curve of their own.
bool sums_in_switch(const std::string& link) { return link == "nvlink4" || link == "nvlink5"; }

/// A point between nodes: its raw rate depends on what the GPUs attain inside one, so these curves are fitted last.
struct BetweenNodes {
  CollectiveKey key;
  std::string version;
  CollectivePoint point;  // raw: the node's NICs
  const Gpu* gpu;
  std::int64_t nodes;
};

/// Share of a link's raw rate that an all-reduce of large buffers attains over `ranks`: of the curves just fitted, else of those
/// that ship.
double share_inside(const RateTables& fitted, const Gpu& gpu, std::int64_t ranks) {
  const CollectiveCurve* best = nullptr;
  for (const CollectiveRow& row : fitted.collective) {
    if (row.link != gpu.scale_up_link || row.kind != CollectiveKind::kAllReduce || row.form != CollectiveForm::kUsual) continue;
    const auto off = [&](const CollectiveCurve& curve) { return std::abs(curve.ranks - ranks); };
    if (best == nullptr || off(row.curve) < off(*best)) best = &row.curve;
  }
  if (best != nullptr) return best->pieces[static_cast<std::size_t>(best->piece_count) - 1].bus_share;
  static const RateSet shipped = RateSet::defaults();
  const BytesPerSecond unit(1.0);
  return attained_inside(shipped.of(gpu), LinkClass::kNvlink, unit, ranks).value();
}

/// What the curves between nodes are shares of, group_rate.h: of two nodes' trees, else the NICs of a node.
double raw_between_nodes(const RateTables& fitted, const BetweenNodes& at) {
  const std::int64_t ranks = std::get<std::int64_t>(at.key), per_node = ranks / at.nodes;
  if (std::get<CollectiveKind>(at.key) != CollectiveKind::kAllReduce || at.nodes != 2 || per_node < 2 ||
      at.gpu->scale_up.value() <= 0)
    return at.point.raw;
  const double inside = at.gpu->scale_up.value() * share_inside(fitted, *at.gpu, per_node);
  return two_domain_rate(at.point.raw, inside, static_cast<double>(ranks), static_cast<double>(per_node));
}

/// A collective of one person's own run: on the link that the tool names, else the scale-up link, or the NICs between nodes.
void add_own_run(const KernelTable& table, const KernelMeasurement& row, const CollectiveMeasurement& c, const Gpu& gpu,
                 CollectiveGroups& groups, std::vector<BetweenNodes>& between, std::map<std::string, std::string>& sources,
                 FitReport& report) {
  std::string link = c.link;
  double raw = 0;
  if (gpu.generation == "host") {
    raw = gpu.scale_up.value();  // of each link the best rate measured: fit_imported sets it
  } else if (c.nodes > 1) {
    link = "nic";
    raw = table.network_rate * c.node_share;
  } else if (link.empty() || link == gpu.scale_up_link || link == "nvlink") {
    link = gpu.scale_up_link;
    raw = gpu.scale_up.value();
  }
  if (link.empty() || raw <= 0) {
    const std::string what =
        c.nodes > 1
            ? "collectives over " + std::to_string(c.nodes) + " nodes: the rate of a node's NICs is not known (--network-rate)"
            : "collectives over '" + (link.empty() ? "a GPU without scale-up link" : link) + "': no raw rate to fit shares of";
    if (std::find(report.left_out.begin(), report.left_out.end(), what) == report.left_out.end()) report.left_out.push_back(what);
    return;
  }
  const CollectiveKey key{link, c.kind, c.form(), c.ranks};
  const CollectivePoint point{c.bytes.value(), row.time.value(), raw, row.spread};
  sources[link] = table.source;
  if (link == "nic") {
    between.push_back({key, c.software, point, &gpu, c.nodes});
  } else {
    groups[key][c.software].push_back(point);
  }
}

/// Sizes of groups inside a node that the first table does not have (3, 5, 6 and 7 GPUs, NVLink 2), from the others. Their raw
/// rate is what the topology gives a group of the first GPUs that runs alone: of a mesh what its rings move. By group, the table.
std::map<CollectiveKey, std::string> fill_missing_sizes(const std::vector<KernelTable>& tables, std::span<const Gpu> gpus,
                                                        CollectiveGroups& groups) {
  CollectiveGroups filled;
  std::map<CollectiveKey, std::string> tables_of;
  for (const KernelTable& table : tables) {
    if (table.own_run) continue;
    for (const KernelMeasurement& row : table.rows) {
      const auto* c = std::get_if<CollectiveMeasurement>(&row.what);
      const Gpu* gpu = gpu_named(gpus, row.gpu);
      if (c == nullptr || gpu == nullptr || c->nodes != 1 || gpu->scale_up.value() <= 0) continue;
      const CollectiveKey key{gpu->scale_up_link, c->kind, CollectiveForm::kUsual, c->ranks};
      if (groups.contains(key)) continue;
      filled[key][""].push_back({c->bytes.value(), row.time.value(), lone_group_rate(*gpu, c->ranks)});
      tables_of.try_emplace(key, table.source);
    }
  }
  groups.merge(filled);
  return tables_of;
}

/// One curve a group, of the version with most points.
void fit_groups(const CollectiveGroups& groups, const std::function<std::string(const CollectiveKey&)>& source_of,
                FitReport& report) {
  for (const auto& [key, versions] : groups) {
    const auto& [link, kind, form, ranks] = key;
    const auto most = std::max_element(versions.begin(), versions.end(),
                                       [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    const std::vector<CollectivePoint>& points = most->second;
    const std::string label = "collective " + link + " " + std::string(name_of(kind)) + " " + std::to_string(ranks) + " ranks" +
                              (form == CollectiveForm::kUsual ? std::string() : ", " + std::string(name_of(form)));
    for (const auto& [version, others] : versions) {
      if (version != most->first)
        report.left_out.push_back(label + ", NCCL " + version + ": " + std::to_string(others.size()) +
                                  " points, beside the curve of NCCL " + most->first);
    }
    std::vector<double> sizes;
    for (const CollectivePoint& point : points) sizes.push_back(point.bytes);
    std::sort(sizes.begin(), sizes.end());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    if (sizes.size() < kFewestSizes) {
      report.left_out.push_back(label + ": " + std::to_string(sizes.size()) + " sizes");
      continue;
    }
    CollectiveRow row{
        link, kind,
        link == "nic" ? fit_collective(points, kind, ranks, kLargestFabricShare) : fit_collective(points, kind, ranks)};
    row.form = form;
    row.curve.quality.source = source_of(key) + (most->first.empty() ? "" : ", NCCL " + most->first);
    report.tables.collective.push_back(row);
  }
}

}  // namespace

double lone_group_rate(const Gpu& gpu, std::int64_t ranks) {
  static const std::vector<Cluster> meshes = [] {
    std::vector<Cluster> built;
    for (const ClusterSpec& spec : cluster_specs())
      if (spec.scale_up == ScaleUpKind::kMesh) built.push_back(build_cluster(spec, 1).value());
    return built;
  }();
  const auto host = std::find_if(meshes.begin(), meshes.end(), [&](const Cluster& mesh) { return mesh.gpu.name == gpu.name; });
  if (host == meshes.end() || ranks > host->gpus()) return gpu.scale_up.value();
  std::vector<std::int64_t> group(static_cast<std::size_t>(ranks));
  std::iota(group.begin(), group.end(), 0);
  return price_members(*host, {{group}}, false).collective_rate.value();
}

void fit_collectives(const std::vector<KernelTable>& tables, std::span<const Gpu> gpus, FitReport& report) {
  // One curve per link class, not per GPU: H100 and H200 share NVLink 4 and measure alike.
  CollectiveGroups groups;
  std::vector<BetweenNodes> between;
  std::map<std::string, std::string> sources;
  for (const KernelTable& table : tables) {
    const bool within_node = table.own_run || table.source.find("aiconfigurator") != std::string::npos;
    for (const KernelMeasurement& row : table.rows) {
      const auto* c = std::get_if<CollectiveMeasurement>(&row.what);
      const Gpu* gpu = gpu_named(gpus, row.gpu);
      if (c == nullptr || gpu == nullptr) continue;
      if (table.own_run) {
        add_own_run(table, row, *c, *gpu, groups, between, sources, report);
        continue;
      }
      if (within_node && c->nodes == 1 && gpu->scale_up.value() > 0) {
        const std::string& link = gpu->scale_up_link;
        const CollectiveForm form = c->int8_sums && sums_in_switch(link) ? CollectiveForm::kInt8Sums : CollectiveForm::kUsual;
        groups[{link, c->kind, form, c->ranks}][c->software].push_back(
            {c->bytes.value(), row.time.value(), gpu->scale_up.value()});
        // Between two GPUs an all-to-all is one message each way: the neighbour hop of a ring.
        if (c->kind == CollectiveKind::kAllToAll && c->ranks == 2) {
          groups[{link, CollectiveKind::kSendRecv, CollectiveForm::kUsual, 2}][c->software].push_back(
              {c->bytes.value() / 2, row.time.value(), gpu->scale_up.value()});
        }
        sources[gpu->scale_up_link] = table.source;
      } else if (!within_node && c->nodes > 1 && fabric_rate(c->software) > 0 && c->bytes.value() >= 1024) {
        // Of these sources `software` is the fabric: few points each, one curve of both, which agree within 4 % at equal sizes.
        between.push_back({{"nic", c->kind, CollectiveForm::kUsual, c->ranks},
                           "",
                           {c->bytes.value(), row.time.value(), fabric_rate(c->software)},
                           gpu,
                           c->nodes});
        sources["nic"] = table.source + ": AWS EFA, OCI RoCE, node NICs 400 GB/s";
      }
    }
  }
  const std::map<CollectiveKey, std::string> filled = fill_missing_sizes(tables, gpus, groups);
  const auto source_of = [&](const CollectiveKey& key) {
    const auto other = filled.find(key);
    return other != filled.end() ? other->second : sources[std::get<std::string>(key)];
  };
  fit_groups(groups, source_of, report);
  CollectiveGroups crossing;
  for (const BetweenNodes& at : between) {
    CollectivePoint point = at.point;
    point.raw = raw_between_nodes(report.tables, at);
    crossing[at.key][at.version].push_back(point);
  }
  fit_groups(crossing, source_of, report);
}

}  // namespace cpfit
