// cpfit topology: the graph of a preset or file, its links, where rings cross nodes, and what looks wrong about it.
#include <fmt/format.h>

#include <memory>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/terminal.h"
#include "cli/topology_import_command.h"
#include "model/cluster/cluster.h"
#include "model/cluster/topology_check.h"
#include "model/cluster/topology_text.h"
#include "model/quantity/text.h"

namespace cpfit::cli {

namespace {

struct TopologyArguments {
  std::string what;
  ImportOptions options;  // nodes, and what files of other tools leave open
  std::int32_t tp = 1;
  std::int32_t cp = 0;
  bool json = false;
};

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
  return json;
}

Json hop_json(const HopNetwork& hop) {
  return {{"bytes_per_second", hop.rate.value()}, {"latency_seconds", hop.latency.value()},
          {"slowest", name_of(hop.slowest)},      {"flows", hop.flows},
          {"crosses_node", hop.crosses_node},     {"link", hop.link}};
}

int run_show(const TopologyArguments& arguments) {
  const Outcome<Cluster> cluster = find_topology(arguments.what, arguments.options);
  if (!cluster.ok()) {
    print_problems(cluster.problems());
    return kBadInput;
  }
  const std::int64_t in_ring = arguments.cp > 0 ? arguments.cp : std::max<std::int64_t>(1, cluster->gpus() / arguments.tp);
  if (arguments.tp * in_ring > cluster->gpus()) {
    print_problems({{"topology.ring", "--cp",
                     fmt::format("a ring of {} ranks at stride {} needs {} GPUs; the cluster has {}", in_ring, arguments.tp,
                                 arguments.tp * in_ring, cluster->gpus()),
                     "give more --nodes, or a smaller --cp or --tp"}});
    return kBadInput;
  }
  const GroupShape ring{arguments.tp, in_ring};
  const std::optional<RingWarning> warning = ring_warning(*cluster, arguments.tp, static_cast<std::int32_t>(in_ring));
  if (arguments.json) {
    Json json = graph_json(*cluster);
    json["ring"] = {{"stride", ring.stride}, {"size", ring.size}, {"hops", Json::array()}};
    for (const RingHop& hop : ring_hops(*cluster, ring)) {
      Json entry = hop_json(hop.network);
      entry["from_rank"] = hop.from;
      entry["to_rank"] = hop.to;
      json["ring"]["hops"].push_back(entry);
    }
    json["warning"] = warning ? Json(warning->sentence) : Json(nullptr);
    print_json(json);
    return kDone;
  }
  fmt::print("{}\n{} nodes of {} x {}, scale-up domain {} GPUs\n{}\n\n", styled(cluster->name, Style::kBold), cluster->nodes,
             cluster->gpus_per_node, cluster->gpu.name, cluster->scale_up_domain, wrapped(cluster->source, 2));
  fmt::print("{}\n{}\n", styled("Connections inside node 0", Style::kBold),
             print_matrix(connection_matrix(*cluster->topology, 0)));
  fmt::print("{}\n{}\n", styled("Links", Style::kBold), print_links(link_table(*cluster->topology)));
  if (ring.size > 1) {
    fmt::print("{}\n{}", styled(fmt::format("Ring of rank 0: cp={} at stride tp={}", ring.size, ring.stride), Style::kBold),
               print_ring(*cluster, ring));
    if (warning) fmt::print("\n{}\n", styled(wrapped("warning: " + warning->sentence, 2), Style::kWarn));
  }
  return kDone;
}

int run_check(const TopologyArguments& arguments) {
  const Outcome<Cluster> cluster = find_topology(arguments.what, arguments.options);
  if (!cluster.ok()) {
    print_problems(cluster.problems());
    return kBadInput;
  }
  const Problems findings = check_topology(*cluster);
  bool broken = false;
  Json list = Json::array();
  for (const Problem& finding : findings) {
    broken = broken || is_error(finding);
    list.push_back({{"code", finding.code}, {"where", finding.where}, {"message", finding.message}, {"repair", finding.repair}});
    if (arguments.json) continue;
    fmt::print("{}: {}\n", styled(is_error(finding) ? "error" : "warning", is_error(finding) ? Style::kBad : Style::kWarn),
               to_text(finding));
  }
  if (arguments.json)
    print_json({{"name", cluster->name}, {"findings", list}, {"usable", !broken}});
  else if (findings.empty())
    fmt::print("{}: {} GPUs, {} links, nothing suspicious\n", cluster->name, cluster->gpus(), cluster->topology->links().size());
  return broken ? kBadInput : kDone;
}

}  // namespace

void add_topology(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("topology", "Graph, links, routes of a cluster; where rings cross nodes");
  command->require_subcommand(1);
  const auto add = [&](const char* name, const char* what, int (*run)(const TopologyArguments&), bool ring) {
    auto arguments = std::make_shared<TopologyArguments>();
    CLI::App* sub = command->add_subcommand(name, what);
    sub->add_option("cluster", arguments->what,
                    "Preset (cpfit presets clusters) or topology file, of cpfit or another tool (docs/topology.md)")
        ->required();
    sub->add_option("--nodes", arguments->options.nodes, "Nodes (default: 1, or what the file says)")
        ->check(CLI::Range(1, 1 << 20));
    add_import_options(*sub, arguments->options);
    if (ring) {
      sub->add_option("--tp", arguments->tp, "Tensor-parallel degree: stride of the ring")
          ->capture_default_str()
          ->check(CLI::Range(1, 1 << 16));
      sub->add_option("--cp", arguments->cp, "Ranks of the ring (default: all GPUs)")->check(CLI::Range(1, 1 << 20));
    }
    sub->add_flag("--json", arguments->json, "Print one JSON object");
    sub->callback([arguments, run, &exit_code] { exit_code = run(*arguments); });
  };
  add("show", "Matrix, links, ring hops, and the slow hop another placement avoids", run_show, true);
  add("check", "What is suspicious: unreachable pairs, asymmetric links, missing NICs, wrong capacities", run_check, false);
  add_topology_import(*command, exit_code);
}

}  // namespace cpfit::cli
