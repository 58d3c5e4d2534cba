#include "cli/topology/show.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>

#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/terminal.h"
#include "cli/topology/import_command.h"
#include "cli/topology/placement_study.h"
#include "model/cluster/member_network.h"
#include "model/cluster/topology_text.h"
#include "model/quantity/counted.h"
#include "model/quantity/text.h"
#include "model/recipe/rank_grid.h"
#include "sim/plan/placement_text.h"

namespace cpfit::cli {

namespace {

/// Ranks up to which show looks for a better placement by itself; `place` does it beyond.
constexpr std::int64_t kShownRanks = 512;

struct ShowArguments {
  std::string what;
  ImportOptions import;  // nodes, and what files of other tools leave open
  PlacementOptions placement;
  std::int32_t tp = 1;
  std::int32_t cp = 0;
  bool json = false;
};

/// What show says beyond the graph.
struct Shown {
  GroupShape ring;
  std::optional<RingWarning> ring_warning;
  std::optional<PlacementAdvice> advice;  // none where GPUs have no route, or the cluster is large
  std::string rails;
  std::string warning;  // both warnings in one paragraph; empty: none
};

std::int64_t gpus_of_node(const Cluster& cluster) { return std::min<std::int64_t>(cluster.gpus_per_node, cluster.gpus()); }

/// From GPU 0 of node 0 to the next node: to the same number, and to another rail (the last GPU's, where it has one).
std::vector<GpuFlow> between_nodes(const Cluster& cluster) {
  if (cluster.nodes < 2) return {};
  return {{0, cluster.gpus_per_node}, {cluster.gpus_per_node - 1, cluster.gpus_per_node}};
}

Json route_json(const Topology& topology, const GpuFlow& flow) {
  const FlowRoute route = flow_route(topology, flow.from, flow.to);
  return {{"from_gpu", flow.from},
          {"to_gpu", flow.to},
          {"route", route_text(topology, flow.from, flow.to)},
          {"bytes_per_second", route.rate.value()},
          {"latency_seconds", route.latency.value()},
          {"narrowest", name_of(route.narrowest)},
          {"crosses_rail", route.crosses_rail},
          {"crosses_spine", route.crosses_spine}};
}

Json graph_json(const Cluster& cluster) {
  const Topology& topology = *cluster.topology;
  Json json;
  json["name"] = cluster.name;
  json["gpu"] = cluster.gpu.name;
  json["nodes"] = cluster.nodes;
  json["gpus"] = cluster.gpus();
  json["gpus_per_node"] = cluster.gpus_per_node;
  json["scale_up_domain"] = cluster.scale_up_domain;
  json["source"] = cluster.source;
  json["vertices"] = topology.vertices().size();
  json["links"] = Json::array();
  for (const TopologyLink& row : link_table(topology)) {
    json["links"].push_back({{"class", name_of(row.link_class)},
                             {"from", name_of(row.from)},
                             {"to", name_of(row.to)},
                             {"bytes_per_second", row.capacity.value()},
                             {"latency_seconds", row.latency.value()},
                             {"count", row.count},
                             {"example", row.example}});
  }
  const ConnectionMatrix matrix = connection_matrix(topology, 0);
  json["matrix"] = {{"names", matrix.names}, {"codes", matrix.codes}};
  Json rates = Json::array(), latencies = Json::array();
  for (std::int64_t a = 0; a < gpus_of_node(cluster); ++a) {
    Json rate_row = Json::array(), latency_row = Json::array();
    for (std::int64_t b = 0; b < gpus_of_node(cluster); ++b) {
      const FlowRoute route = flow_route(topology, a, b);
      rate_row.push_back(a == b ? Json(nullptr) : Json(route.rate.value()));
      latency_row.push_back(a == b ? Json(nullptr) : Json(route.latency.value()));
    }
    rates.push_back(rate_row);
    latencies.push_back(latency_row);
  }
  json["pairs"] = {{"bytes_per_second", rates}, {"latency_seconds", latencies}};
  json["between_nodes"] = Json::array();
  for (const GpuFlow& flow : between_nodes(cluster)) json["between_nodes"].push_back(route_json(topology, flow));
  return json;
}

/// Rates of node 0, one flow alone: one line where all pairs are alike, else GB/s in a matrix.
std::string pairs_text(const Cluster& cluster) {
  const Topology& topology = *cluster.topology;
  const std::int64_t count = gpus_of_node(cluster);
  if (count < 2) return "one GPU\n";
  const FlowRoute first = flow_route(topology, 0, 1);
  bool alike = true;
  std::vector<Table::Column> columns{{"GB/s", false}};
  for (std::int64_t a = 0; a < count; ++a) {
    columns.push_back({std::to_string(a)});
    for (std::int64_t b = 0; b < count; ++b) {
      const FlowRoute route = flow_route(topology, a, b);
      alike = alike && (a == b || (route.rate == first.rate && route.latency == first.latency));
    }
  }
  if (alike)
    return fmt::format("every pair: {}, {}, {}\n", route_text(topology, 0, 1), print_rate(first.rate), print_time(first.latency));
  Table table(std::move(columns));
  for (std::int64_t a = 0; a < count; ++a) {
    std::vector<std::string> row{std::to_string(a)};
    for (std::int64_t b = 0; b < count; ++b) {
      const FlowRoute route = flow_route(topology, a, b);
      row.push_back(a == b ? "X" : !route.reachable ? "-" : fmt::format("{:.4g}", route.rate.value() / 1e9));
    }
    table.row(std::move(row));
  }
  return table.text();
}

std::string between_text(const Cluster& cluster) {
  std::string text;
  for (const GpuFlow& flow : between_nodes(cluster)) {
    const FlowRoute route = flow_route(*cluster.topology, flow.from, flow.to);
    if (!route.reachable) {
      text += fmt::format("GPU {} -> {}: no route\n", flow.from, flow.to);
      continue;
    }
    text += fmt::format("GPU {} -> {}: {}, {}, {}\n", flow.from, flow.to, route_text(*cluster.topology, flow.from, flow.to),
                        print_rate(route.rate), print_time(route.latency));
  }
  return text;
}

struct AxisGroup {
  Axis axis;
  GroupShape shape;
  GroupNetwork network;
};

std::vector<AxisGroup> groups_of(const Cluster& cluster, const Recipe& recipe) {
  std::vector<AxisGroup> groups;
  for (const Axis axis : recipe.rank_order.axes) {
    const GroupShape shape = group_shape(recipe, axis);
    if (shape.size > 1) groups.push_back({axis, shape, price_group(cluster, shape)});
  }
  return groups;
}

std::string groups_text(const std::vector<AxisGroup>& groups) {
  Table table({{"axis", false},
               {"ranks"},
               {"stride"},
               {"in a domain"},
               {"domains"},
               {"ring hop"},
               {"latency"},
               {"shared by"},
               {"collectives"},
               {"over", false}});
  for (const AxisGroup& group : groups) {
    const GroupNetwork& network = group.network;
    table.row({std::string(name_of(group.axis)), std::to_string(group.shape.size), std::to_string(group.shape.stride),
               std::to_string(network.members_per_domain), std::to_string(network.domains), print_rate(network.ring.rate),
               print_time(network.ring.latency), std::to_string(network.ring.flows), print_rate(network.collective_rate),
               std::string(name_of(network.collective_link))});
  }
  return table.text();
}

Shown look(const Cluster& cluster, const PlacementStudy& study) {
  const Recipe& recipe = study.recipe();
  Shown shown;
  shown.ring = group_shape(recipe, Axis::kCp);
  if (shown.ring.stride == recipe.tp) shown.ring_warning = ring_warning(cluster, recipe.tp, recipe.cp);
  if (recipe.world() <= kShownRanks && study.routed()) {
    shown.advice = optimise_placement(study.context(), recipe);
    shown.rails = rail_sentence(study.context(), recipe, shown.advice->before);
  }
  if (shown.ring_warning) shown.warning = shown.ring_warning->sentence;
  if (shown.advice && avoids_slow_hop(*shown.advice)) {
    shown.warning += (shown.warning.empty() ? "" : " ") + shown.advice->sentence;
  }
  return shown;
}

int show_json(const Cluster& cluster, const PlacementStudy& study, const Shown& shown) {
  Json json = graph_json(cluster);
  json["recipe"] = to_text(study.recipe());
  json["ring"] = {{"stride", shown.ring.stride}, {"size", shown.ring.size}, {"hops", Json::array()}};
  for (const RingHop& hop : ring_hops(cluster, shown.ring)) {
    json["ring"]["hops"].push_back({{"bytes_per_second", hop.network.rate.value()},
                                    {"latency_seconds", hop.network.latency.value()},
                                    {"slowest", name_of(hop.network.slowest)},
                                    {"flows", hop.network.flows},
                                    {"crosses_node", hop.network.crosses_node},
                                    {"link", hop.network.link},
                                    {"route", route_text(*cluster.topology, hop.from, hop.to)},
                                    {"from_rank", hop.from},
                                    {"to_rank", hop.to}});
  }
  json["groups"] = Json::object();
  for (const AxisGroup& group : groups_of(cluster, study.recipe())) {
    json["groups"][std::string(name_of(group.axis))] = {{"size", group.shape.size},
                                                        {"stride", group.shape.stride},
                                                        {"members_per_domain", group.network.members_per_domain},
                                                        {"domains", group.network.domains},
                                                        {"ring_bytes_per_second", group.network.ring.rate.value()},
                                                        {"ring_latency_seconds", group.network.ring.latency.value()},
                                                        {"ring_flows", group.network.ring.flows},
                                                        {"collective_bytes_per_second", group.network.collective_rate.value()},
                                                        {"collective_link", name_of(group.network.collective_link)}};
  }
  json["rails"] = shown.rails.empty() ? Json(nullptr) : Json(shown.rails);
  json["placement"] = nullptr;
  if (shown.advice) {
    json["placement"] = {{"better", shown.advice->better},
                         {"sentence", shown.advice->sentence},
                         {"before", price_json(shown.advice->before)},
                         {"after", price_json(shown.advice->after)}};
  }
  json["warning"] = shown.warning.empty() ? Json(nullptr) : Json(shown.warning);
  print_json(json);
  return kDone;
}

int run_show(const ShowArguments& arguments) {
  const Outcome<Cluster> cluster = find_topology(arguments.what, arguments.import);
  if (!cluster.ok()) {
    print_problems(cluster.problems());
    return kBadInput;
  }
  const std::int64_t in_ring = arguments.cp > 0 ? arguments.cp : std::max<std::int64_t>(1, cluster->gpus() / arguments.tp);
  if (arguments.placement.recipe.empty() && arguments.tp * in_ring > cluster->gpus()) {
    print_problems({{"topology.ring", "--cp",
                     fmt::format("a ring of {} ranks at stride {} needs {} GPUs; the cluster has {}", in_ring, arguments.tp,
                                 arguments.tp * in_ring, cluster->gpus()),
                     "give more --nodes, or a smaller --cp or --tp"}});
    return kBadInput;
  }
  const Outcome<PlacementStudy> study =
      arguments.placement.recipe.empty()
          ? PlacementStudy::build(*cluster, arguments.placement, arguments.tp, static_cast<std::int32_t>(in_ring))
          : PlacementStudy::build(*cluster, arguments.placement);
  if (!study.ok()) {
    print_problems(study.problems());
    return kBadInput;
  }
  const Shown shown = look(*cluster, *study);
  if (arguments.json) return show_json(*cluster, *study, shown);

  const auto title = [](const std::string& text) { return styled(text, Style::kBold); };
  fmt::print("{}\n{} of {} x {}, scale-up domain of {}\n{}\n\n", title(cluster->name), counted(cluster->nodes, "node"),
             cluster->gpus_per_node, cluster->gpu.name, counted(cluster->scale_up_domain, "GPU"), wrapped(cluster->source, 2));
  fmt::print("{}\n{}\n", title("Connections inside node 0"), print_matrix(connection_matrix(*cluster->topology, 0)));
  fmt::print("{}\n{}\n", title("Between GPUs of node 0, one flow alone"), pairs_text(*cluster));
  if (cluster->nodes > 1) fmt::print("{}\n{}\n", title("Between nodes, one flow alone"), between_text(*cluster));
  fmt::print("{}\n{}\n", title("Links"), print_links(link_table(*cluster->topology)));
  const std::vector<AxisGroup> groups = groups_of(*cluster, study->recipe());
  if (!groups.empty())
    fmt::print("{}\n{}\n", title("Groups of " + to_text(study->recipe()) + ", each with all its kind at once"),
               groups_text(groups));
  if (shown.ring.size > 1) {
    fmt::print("{}\n{}",
               title(fmt::format("Ring of rank 0: cp={} at stride {}{}", shown.ring.size,
                                 shown.ring.stride == study->recipe().tp ? "tp=" : "", shown.ring.stride)),
               print_ring(*cluster, shown.ring));
    if (shown.advice && !shown.advice->before.ring.empty()) {
      const PlacementPrice& price = shown.advice->before;
      fmt::print("\n{}\n",
                 wrapped(fmt::format("{}: a KV message of {} takes {} over the slowest hop, {} of {} hops go over NICs.",
                                     study->subject(), print_bytes(price.kv_message), print_time(price.slowest.message),
                                     price.counts.leaving, price.counts.hops),
                         2));
    }
    if (!shown.rails.empty()) fmt::print("{}\n", wrapped(shown.rails, 2));
    if (shown.advice && shown.advice->better && !avoids_slow_hop(*shown.advice))
      fmt::print("{}\n", wrapped(shown.advice->sentence, 2));
    if (!shown.warning.empty()) fmt::print("\n{}\n", styled(wrapped("warning: " + shown.warning, 2), Style::kWarn));
  }
  if (!shown.advice && study->recipe().world() > kShownRanks)
    fmt::print("note: placements of more than {} ranks are searched by `cpfit topology place`\n", kShownRanks);
  return kDone;
}

}  // namespace

void add_topology_show(CLI::App& topology, int& exit_code) {
  auto arguments = std::make_shared<ShowArguments>();
  CLI::App* command = topology.add_subcommand("show", "Matrix, links, ring hops, and the slow hop another placement avoids");
  command
      ->add_option("cluster", arguments->what,
                   "Preset (cpfit presets clusters) or topology file, of cpfit or another tool (docs/topology.md)")
      ->required();
  command->add_option("--nodes", arguments->import.nodes, "Nodes (default: 1, or what the file says)")
      ->check(CLI::Range(1, 1 << 20));
  add_import_options(*command, arguments->import);
  CLI::Option* tp = command->add_option("--tp", arguments->tp, "Tensor-parallel degree: stride of the ring")
                        ->capture_default_str()
                        ->check(CLI::Range(1, 1 << 16));
  CLI::Option* cp =
      command->add_option("--cp", arguments->cp, "Ranks of the ring (default: all GPUs)")->check(CLI::Range(1, 1 << 20));
  add_placement_options(*command, arguments->placement);
  command->get_option("--recipe")->excludes(tp)->excludes(cp);
  command->add_flag("--json", arguments->json, "Print one JSON object");
  command->callback([arguments, &exit_code] { exit_code = run_show(*arguments); });
}

}  // namespace cpfit::cli
