#include "model/cluster/import/slurm_tree.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "model/cluster/import/formats.h"
#include "model/cluster/import/host_list.h"
#include "model/cluster/import/scan.h"

namespace cpfit {
namespace {

Outcome<std::vector<std::string>> expanded(const std::string& list, std::size_t most, const std::string& where,
                                           std::size_t line) {
  Outcome<std::vector<std::string>> names = expand_host_list(list, most);
  if (names) return names;
  Problems problems = names.problems();
  for (Problem& problem : problems) problem.where = fmt::format("{}:{}", where, line);
  return problems;
}

/// Hosts of one leaf or block. A host that was met before stays where it was.
Problems add_hosts(ImportedFabric& fabric, std::map<std::string, std::int32_t>& known, const SlurmEntry& entry, std::int32_t leaf,
                   const std::string& where, std::vector<std::int32_t>* members, std::size_t& repeated) {
  const Outcome<std::vector<std::string>> names = expanded(entry.nodes, kMostHosts, where, entry.line);
  if (!names) return names.problems();
  for (const std::string& name : *names) {
    const auto [found, fresh] = known.try_emplace(name, static_cast<std::int32_t>(fabric.hosts.size()));
    if (!fresh) {
      if (++repeated > kMostHosts)
        return {scan::problem("duplicate", where, entry.line, "the same nodes are listed again and again")};
      continue;
    }
    if (fabric.hosts.size() >= kMostHosts)
      return {scan::problem("too_large", where, entry.line, fmt::format("more than {} nodes", kMostHosts))};
    fabric.hosts.push_back({name, {{leaf, std::nullopt, ""}}});
    if (members != nullptr) members->push_back(found->second);
  }
  return {};
}

}  // namespace

Outcome<ImportedFabric> fabric_of_switches(const std::vector<SlurmEntry>& switches, const std::string& where,
                                           std::vector<std::string>& notes) {
  ImportedFabric fabric;
  std::map<std::string, std::int32_t> numbers, hosts;
  if (switches.size() > kMostSwitches)
    return scan::problem("too_large", where, 0, fmt::format("{} switches", switches.size()),
                         fmt::format("up to {} can be read", kMostSwitches));
  for (const SlurmEntry& entry : switches) {
    if (!numbers.try_emplace(entry.name, static_cast<std::int32_t>(fabric.switches.size())).second)
      return scan::problem("duplicate", where, entry.line,
                           fmt::format("switch '{}' is described twice", scan::shown(entry.name)));
    fabric.switches.push_back({entry.name, !entry.nodes.empty()});
  }
  std::size_t repeated = 0;
  std::vector<std::int32_t> parent(switches.size(), -1);
  for (std::size_t s = 0; s < switches.size(); ++s) {
    const SlurmEntry& entry = switches[s];
    if (!entry.nodes.empty()) {
      Problems found = add_hosts(fabric, hosts, entry, static_cast<std::int32_t>(s), where, nullptr, repeated);
      if (!found.empty()) return found;
    }
    const Outcome<std::vector<std::string>> children = expanded(entry.children, kMostSwitches, where, entry.line);
    if (!children) return children.problems();
    for (const std::string& child : *children) {
      const auto found = numbers.find(child);
      if (found == numbers.end()) {
        return scan::problem(
            "unknown_switch", where, entry.line,
            fmt::format("switch '{}' has a child '{}' that is not described", scan::shown(entry.name), scan::shown(child)),
            "add a line for it");
      }
      std::int32_t& above = parent[static_cast<std::size_t>(found->second)];
      if (above >= 0)
        return scan::problem("two_parents", where, entry.line, fmt::format("switch '{}' has two parents", scan::shown(child)));
      above = static_cast<std::int32_t>(s);
      fabric.trunks.push_back({static_cast<std::int32_t>(found->second), static_cast<std::int32_t>(s), std::nullopt, 1});
    }
  }
  std::size_t roots = 0;
  for (std::size_t s = 0; s < switches.size(); ++s) {
    roots += parent[s] < 0 ? 1 : 0;
    std::size_t steps = 0;
    for (auto above = static_cast<std::int32_t>(s); above >= 0; above = parent[static_cast<std::size_t>(above)]) {
      if (++steps > switches.size())
        return scan::problem("loop", where, switches[s].line,
                             fmt::format("switch '{}' is its own parent", scan::shown(switches[s].name)));
    }
  }
  if (fabric.hosts.empty()) return scan::problem("no_nodes", where, 0, "no switch has nodes", "leaf switches need Nodes=");
  if (repeated > 0) notes.push_back(fmt::format("{} nodes hang on several leaves: the first one is taken", repeated));
  if (roots > 1)
    notes.push_back(fmt::format("{} switches have no parent: nodes below different ones do not reach each other", roots));
  return fabric;
}

Outcome<ImportedFabric> fabric_of_blocks(const std::vector<SlurmEntry>& blocks, const std::string& where,
                                         std::vector<std::string>& notes) {
  ImportedFabric fabric;
  std::map<std::string, std::int32_t> hosts;
  std::size_t repeated = 0;
  if (blocks.size() >= kMostSwitches) return scan::problem("too_large", where, 0, fmt::format("{} blocks", blocks.size()));
  for (const SlurmEntry& block : blocks) {
    const auto leaf = static_cast<std::int32_t>(fabric.switches.size());
    fabric.switches.push_back({block.name, true});
    Problems found = add_hosts(fabric, hosts, block, leaf, where, &fabric.blocks.emplace_back(), repeated);
    if (!found.empty()) return found;
  }
  if (fabric.hosts.empty()) return scan::problem("no_nodes", where, 0, "no block has nodes", "blocks need Nodes=");
  if (blocks.size() > 1) {
    const auto spine = static_cast<std::int32_t>(fabric.switches.size());
    fabric.switches.push_back({"spine", false});
    for (std::int32_t leaf = 0; leaf < spine; ++leaf) fabric.trunks.push_back({leaf, spine, std::nullopt, 1});
  }
  if (repeated > 0) notes.push_back(fmt::format("{} nodes are in several blocks: the first one is taken", repeated));
  notes.push_back("blocks say nothing about the network between them: one leaf per block under one spine is assumed");
  return fabric;
}

Outcome<ImportedOrder> order_of_rings(const std::vector<SlurmEntry>& rings, const std::string& where) {
  ImportedOrder order;
  std::size_t nodes = 0;
  for (const SlurmEntry& ring : rings) {
    const Outcome<std::vector<std::string>> names = expanded(ring.nodes, kMostHosts, where, ring.line);
    if (!names) return names.problems();
    order.rings.push_back({ring.name, *names});
    nodes += names->size();
    if (order.rings.size() > kMostSwitches || nodes > kMostHosts)
      return scan::problem("too_large", where, ring.line, "too many rings");
  }
  return order;
}

}  // namespace cpfit
