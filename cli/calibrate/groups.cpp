#include "cli/calibrate/groups.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "model/rates/overlay.h"
#include "sim/plan/workbench.h"

namespace cpfit::cli {

namespace {

/// What an axis of a recipe sends as collectives.
struct AxisTraffic {
  const char* axis = "";
  GroupShape shape;
  std::vector<CollectiveKind> kinds;
};

std::vector<AxisTraffic> traffic_of(const Recipe& recipe) {
  const GroupShapes shapes = group_shapes(recipe);
  const std::vector<CollectiveKind> halves = {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter};
  const std::vector<CollectiveKind> whole = {CollectiveKind::kAllReduce};
  std::vector<AxisTraffic> traffic = {{"tp", shapes.tp, recipe.sequence_parallel ? halves : whole},
                                      {"dp", shapes.dp, recipe.state_sharding == StateSharding::kNone ? whole : halves}};
  traffic.push_back({"dp replicas", shapes.dp_replica, whole});
  if (recipe.cp_comm == CpComm::kAllGather) traffic.push_back({"cp", shapes.cp_ring, halves});
  if (recipe.cp_comm == CpComm::kA2a || recipe.cp_comm == CpComm::kA2aP2p)
    traffic.push_back({"cp", shapes.cp_inner, {CollectiveKind::kAllToAll}});
  std::erase_if(traffic, [](const AxisTraffic& one) { return one.shape.size <= 1; });
  return traffic;
}

/// As rates.toml calls the link that a group's collectives cross.
std::string link_name(const Gpu& gpu, LinkClass link) {
  switch (link) {
    case LinkClass::kNvlink:
    case LinkClass::kXgmi:
      return gpu.scale_up_link;
    case LinkClass::kNic:
    case LinkClass::kSpine:
      return "nic";
    case LinkClass::kSocket:
      return "socket";
    case LinkClass::kLocal:
      return "local";
    case LinkClass::kPcie:
      break;
  }
  for (const std::string& name : links_of(gpu)) {
    if (name.starts_with("pcie")) return name;
  }
  return "pcie";
}

}  // namespace

std::vector<std::string> group_warnings(const Calibration& calibration, const Scenario& scenario, const Recipe& recipe) {
  std::vector<std::string> warnings;
  if (calibration.assumed || recipe.world() > scenario.cluster.gpus()) return warnings;
  const Outcome<RateTables> tables = tables_of(calibration);
  if (!tables.ok()) return warnings;
  const RateTables rows = rows_for(*tables, scenario.cluster.gpu);
  for (const AxisTraffic& traffic : traffic_of(recipe)) {
    const GroupNetwork network = price_group(scenario.cluster, traffic.shape);
    const std::string link = link_name(scenario.cluster.gpu, network.collective_link);
    std::vector<std::string> kinds;
    std::set<std::int64_t> sizes;
    for (const CollectiveKind kind : traffic.kinds) {
      std::set<std::int64_t> measured;
      for (const CollectiveRow& row : rows.collective) {
        if (row.kind == kind && row.link == link) measured.insert(row.curve.ranks);
      }
      if (measured.empty() || measured.contains(traffic.shape.size)) continue;
      kinds.emplace_back(name_of(kind));
      sizes.merge(measured);
    }
    if (kinds.empty()) continue;
    warnings.push_back(
        fmt::format("another group shape: {} runs {} on {} ranks over {}, measured there on {}: it rests on other "
                    "sizes and the defaults' curves",
                    traffic.axis, fmt::join(kinds, " and "), traffic.shape.size, link, fmt::join(sizes, ", ")));
  }
  return warnings;
}

}  // namespace cpfit::cli
