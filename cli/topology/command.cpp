// cpfit topology: the graph of a preset or file, its links, where rings cross nodes, and what looks wrong about it.
#include <fmt/format.h>

#include <memory>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/terminal.h"
#include "cli/topology/import_command.h"
#include "cli/topology/show.h"
#include "model/cluster/cluster.h"
#include "model/cluster/topology.h"
#include "model/cluster/topology_check.h"
#include "model/quantity/counted.h"

namespace cpfit::cli {

namespace {

struct TopologyArguments {
  std::string what;
  ImportOptions options;  // nodes, and what files of other tools leave open
  bool json = false;
};

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
    fmt::print("{}: {}, {}, nothing suspicious\n", cluster->name, counted(cluster->gpus(), "GPU"),
               counted(cluster->topology->links().size(), "link"));
  return broken ? kBadInput : kDone;
}

}  // namespace

void add_topology(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("topology", "Graph, links, routes of a cluster; where rings cross nodes");
  command->require_subcommand(1);
  add_topology_show(*command, exit_code);
  add_topology_place(*command, exit_code);
  auto arguments = std::make_shared<TopologyArguments>();
  CLI::App* check =
      command->add_subcommand("check", "What is suspicious: unreachable pairs, asymmetric links, missing NICs, wrong capacities");
  check
      ->add_option("cluster", arguments->what,
                   "Preset (cpfit presets clusters) or topology file, of cpfit or another tool (docs/topology.md)")
      ->required();
  check->add_option("--nodes", arguments->options.nodes, "Nodes (default: 1, or what the file says)")
      ->check(CLI::Range(1, 1 << 20));
  add_import_options(*check, arguments->options);
  check->add_flag("--json", arguments->json, "Print one JSON object");
  check->callback([arguments, &exit_code] { exit_code = run_check(*arguments); });
  add_topology_import(*command, exit_code);
}

}  // namespace cpfit::cli
