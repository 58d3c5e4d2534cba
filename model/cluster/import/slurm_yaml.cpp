// Slurm topology.yaml (man page topology.yaml.5): a list of named topologies; the default one, else the first that describes a
// network, is taken.
#include <fmt/format.h>

#include "model/cluster/import/formats.h"
#include "model/cluster/import/scan.h"
#include "model/cluster/import/slurm_tree.h"
#include "model/cluster/import/yaml.h"

namespace cpfit {
namespace {

std::string value_of(const YamlNode& node, std::string_view key) {
  const YamlNode* found = node.find(key);
  return found == nullptr ? std::string() : found->text;
}

/// The list `key` inside `body`: entries with their name under `name_key`.
std::vector<SlurmEntry> entries(const YamlNode& body, std::string_view key, std::string_view name_key) {
  std::vector<SlurmEntry> out;
  const YamlNode* list = body.find(key);
  if (list == nullptr) return out;
  for (const YamlNode& item : list->items)
    out.push_back({item.line, value_of(item, name_key), value_of(item, "children"), value_of(item, "nodes")});
  return out;
}

bool holds_network(const YamlNode& topology) { return topology.find("tree") != nullptr || topology.find("block") != nullptr; }

}  // namespace

Outcome<ImportedTopology> import_slurm_yaml(std::string_view text, const std::string& where) {
  const Outcome<YamlNode> root = parse_yaml(text, where);
  if (!root) return root.problems();
  const YamlNode* chosen = nullptr;
  for (const YamlNode& topology : root->items) {
    if (value_of(topology, "cluster_default") == "true") chosen = &topology;
  }
  for (const YamlNode& topology : root->items) {
    if (chosen == nullptr && holds_network(topology)) chosen = &topology;
  }
  if (chosen == nullptr && !root->items.empty()) chosen = &root->items[0];
  if (chosen == nullptr)
    return scan::problem("no_nodes", where, 0, "the file lists no topology", "entries read \"- topology: NAME\"");

  ImportedTopology imported;
  imported.format = TopologyFormat::kSlurmYaml;
  imported.where = where;
  const std::string name = scan::shown(value_of(*chosen, "topology"));
  if (root->items.size() > 1) imported.notes.push_back(fmt::format("of {} topologies '{}' is taken", root->items.size(), name));
  if (const YamlNode* tree = chosen->find("tree")) {
    Outcome<ImportedFabric> fabric = fabric_of_switches(entries(*tree, "switches", "switch"), where, imported.notes);
    if (!fabric) return fabric.problems();
    imported.summary =
        fmt::format("a tree of {} switches with {} nodes; no rates", fabric->switches.size(), fabric->hosts.size());
    imported.holds = std::move(fabric.value());
  } else if (const YamlNode* block = chosen->find("block")) {
    Outcome<ImportedFabric> fabric = fabric_of_blocks(entries(*block, "blocks", "block"), where, imported.notes);
    if (!fabric) return fabric.problems();
    imported.summary = fmt::format("{} blocks with {} nodes; no rates", fabric->blocks.size(), fabric->hosts.size());
    imported.holds = std::move(fabric.value());
  } else if (const YamlNode* ring = chosen->find("ring")) {
    Outcome<ImportedOrder> order = order_of_rings(entries(*ring, "rings", "ring"), where);
    if (!order) return order.problems();
    imported.summary = fmt::format("the order of nodes in {} rings", order->rings.size());
    imported.holds = std::move(order.value());
  } else {
    return scan::problem("kind", where, chosen->line,
                         fmt::format("topology '{}' is neither a tree nor blocks: {} holds no switches that routes could follow",
                                     name, chosen->find("torus3d") != nullptr ? "a torus of nodes is not modelled, it" : "it"),
                         "describe the cluster as tree or block, or in the project's own format");
  }
  return imported;
}

}  // namespace cpfit
