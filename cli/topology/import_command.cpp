#include "cli/topology/import_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <ostream>

#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/terminal.h"
#include "cli/write_file.h"
#include "model/cluster/topology_check.h"
#include "model/cluster/topology_file.h"
#include "model/quantity/counted.h"

namespace cpfit::cli {
namespace {

struct ImportArguments {
  std::string file;
  std::string out;
  ImportOptions options;
  bool json = false;
};

Json problems_json(const Problems& problems) {
  Json list = Json::array();
  for (const Problem& problem : problems)
    list.push_back({{"code", problem.code}, {"where", problem.where}, {"message", problem.message}, {"repair", problem.repair}});
  return list;
}

/// Rings of logs and graphs: shown, never written.
int show_order(const ImportArguments& arguments, const ImportedTopology& imported, const ImportedOrder& order) {
  if (arguments.json) {
    Json rings = Json::array(), transports = Json::array();
    for (const ImportedOrder::Ring& ring : order.rings) rings.push_back({{"name", ring.name}, {"members", ring.members}});
    for (const auto& [name, count] : order.transports) transports.push_back({{"name", name}, {"connections", count}});
    print_json({{"format", name_of(imported.format)},
                {"holds", "order"},
                {"summary", imported.summary},
                {"notes", imported.notes},
                {"rings", rings},
                {"transports", transports}});
  } else {
    fmt::print("{}: {}\n", name_of(imported.format), imported.summary);
    for (const ImportedOrder::Ring& ring : order.rings) fmt::print("  {}: {}\n", ring.name, fmt::join(ring.members, " "));
    for (const auto& [name, count] : order.transports) fmt::print("  {} connections over {}\n", count, name);
    for (const std::string& note : imported.notes) fmt::print("  {}\n", wrapped(note, 4));
    fmt::print("An order of ranks says nothing of cables and rates: no topology is written.\n");
  }
  if (arguments.out.empty()) return kDone;
  print_problems({{"import.order_only", arguments.file, "the file holds an order of ranks, no topology",
                   "import what NCCL_TOPO_DUMP_FILE or `nvidia-smi topo -m` wrote on the same machine"}});
  return kBadInput;
}

int run_import(const ImportArguments& arguments) {
  const Outcome<std::string> text = read_import_file(arguments.file);
  if (!text.ok()) {
    print_problems(text.problems());
    return kBadInput;
  }
  const Outcome<ImportedTopology> imported = import_topology(*text, arguments.file);
  if (!imported.ok()) {
    print_problems(imported.problems());
    return kBadInput;
  }
  if (const auto* order = std::get_if<ImportedOrder>(&imported->holds)) return show_order(arguments, *imported, *order);
  const Outcome<ImportedCluster> made = complete_topology(*imported, arguments.options);
  if (!made.ok()) {
    print_problems(made.problems());
    return kBadInput;
  }
  const Cluster& cluster = made->cluster;
  const Problems findings = check_topology(cluster);
  const bool broken = std::any_of(findings.begin(), findings.end(), is_error);
  write_file(arguments.out, [&](std::ostream& file) { file << write_topology(cluster); });
  if (arguments.json) {
    print_json({{"format", name_of(imported->format)},
                {"holds", std::holds_alternative<ImportedFabric>(imported->holds) ? "fabric" : "host"},
                {"summary", imported->summary},
                {"notes", made->notes},
                {"gpu", cluster.gpu.name},
                {"nodes", cluster.nodes},
                {"gpus", cluster.gpus()},
                {"gpus_per_node", cluster.gpus_per_node},
                {"scale_up_domain", cluster.scale_up_domain},
                {"out", arguments.out.empty() ? Json(nullptr) : Json(arguments.out)},
                {"findings", problems_json(findings)},
                {"usable", !broken}});
    return broken ? kBadInput : kDone;
  }
  fmt::print("{}: {}\n{} of {} x {}, scale-up domain of {}\n", name_of(imported->format), imported->summary,
             counted(cluster.nodes, "node"), cluster.gpus_per_node, cluster.gpu.name, counted(cluster.scale_up_domain, "GPU"));
  for (const std::string& note : made->notes) fmt::print("  {}\n", wrapped(note, 4));
  for (const Problem& finding : findings) {
    fmt::print("{}: {}\n", styled(is_error(finding) ? "error" : "warning", is_error(finding) ? Style::kBad : Style::kWarn),
               to_text(finding));
  }
  if (arguments.out.empty()) {
    fmt::print("Nothing is written; --out FILE.json keeps it for `[cluster]` of a scenario.\n");
  } else {
    fmt::print("written to {}\n", arguments.out);
  }
  return broken ? kBadInput : kDone;
}

}  // namespace

Outcome<Cluster> find_topology(const std::string& what, const ImportOptions& options) {
  const bool looks_like_file =
      what.find('/') != std::string::npos || what.ends_with(".json") || std::filesystem::is_regular_file(what);
  if (!looks_like_file) return build_cluster(what, options.nodes > 0 ? options.nodes : 1);
  Outcome<ImportedCluster> made = load_any_topology(what, options);
  if (!made.ok()) return made.problems();
  for (const std::string& note : made->notes) fmt::print(stderr, "note: {}\n", note);
  return std::move(made.value().cluster);
}

void add_import_options(CLI::App& command, ImportOptions& options) {
  command.add_option("--gpu", options.gpu, "GPU of a file of another tool (cpfit presets gpus), where the file does not say it");
  command.add_option("--nic-rate", options.nic_rate, "Rate of one NIC port, where the file does not say it: \"400 Gb/s\"");
}

void add_topology_import(CLI::App& topology, int& exit_code) {
  auto arguments = std::make_shared<ImportArguments>();
  CLI::App* command = topology.add_subcommand(
      "import",
      "Reads nvidia-smi topo -m, NCCL, hwloc, Slurm and ibnetdiscover files, fills what they leave out, checks and writes it");
  command->add_option("file", arguments->file, "File of another tool; its format is known by its content")->required();
  add_import_options(*command, arguments->options);
  command->add_option("--nodes", arguments->options.nodes, "Hosts (default: 1, or all that a fabric has)")
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--out", arguments->out, "Where to write the project's own format");
  command->add_flag("--json", arguments->json, "Print one JSON object");
  command->callback([arguments, &exit_code] { exit_code = run_import(*arguments); });
}

}  // namespace cpfit::cli
