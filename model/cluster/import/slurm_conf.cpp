// Slurm topology.conf (man page topology.conf.5): key=value lines, keys in any case, '#' comments, '\' continues a line.
#include <fmt/format.h>

#include <algorithm>

#include "model/cluster/import/formats.h"
#include "model/cluster/import/scan.h"
#include "model/cluster/import/slurm_tree.h"

namespace cpfit {
namespace {

struct ConfLines {
  std::vector<SlurmEntry> switches, blocks, rings;
  std::string block_sizes;
  bool speeds = false;
};

Problems read_line(std::string_view text, std::size_t line, const std::string& where, ConfLines& out) {
  SlurmEntry entry;
  entry.line = line;
  std::vector<SlurmEntry>* kind = nullptr;
  for (const std::string_view word : scan::words(text)) {
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos)
      return {scan::problem("syntax", where, line, fmt::format("'{}' is not key=value", scan::shown(word)))};
    const std::string key = scan::lower(word.substr(0, equals));
    const std::string value(word.substr(equals + 1));
    if (key == "switchname" || key == "blockname" || key == "ringname") {
      kind = key == "switchname" ? &out.switches : key == "blockname" ? &out.blocks : &out.rings;
      entry.name = value;
    } else if (key == "nodes") {
      entry.nodes = value;
    } else if (key == "switches") {
      entry.children = value;
    } else if (key == "blocksizes") {
      out.block_sizes = value;
      return {};
    } else if (key == "linkspeed") {
      out.speeds = true;
    } else {
      return {scan::problem("syntax", where, line, fmt::format("unknown key '{}'", scan::shown(key)),
                            "known: SwitchName Switches Nodes LinkSpeed BlockName BlockSizes RingName")};
    }
  }
  if (kind == nullptr) return {scan::problem("syntax", where, line, "the line names no switch, block or ring")};
  kind->push_back(std::move(entry));
  return {};
}

}  // namespace

Outcome<ImportedTopology> import_slurm_conf(std::string_view text, const std::string& where) {
  ConfLines lines;
  std::string joined;
  std::size_t number = 0;
  for (std::string_view line : scan::lines(text)) {
    ++number;
    line = scan::trimmed(line.substr(0, line.find('#')));
    const bool continues = line.ends_with('\\');
    if (continues) line.remove_suffix(1);
    joined.append(line);
    if (continues) continue;
    if (!joined.empty()) {
      if (Problems found = read_line(joined, number, where, lines); !found.empty()) return found;
    }
    joined.clear();
  }
  ImportedTopology imported;
  imported.format = TopologyFormat::kSlurmConf;
  imported.where = where;
  if (lines.speeds) imported.notes.push_back("LinkSpeed is left out: Slurm gives it no unit and does not use it");
  if (!lines.switches.empty()) {
    Outcome<ImportedFabric> fabric = fabric_of_switches(lines.switches, where, imported.notes);
    if (!fabric) return fabric.problems();
    imported.summary =
        fmt::format("a tree of {} switches with {} nodes; no rates", fabric->switches.size(), fabric->hosts.size());
    imported.holds = std::move(fabric.value());
  } else if (!lines.blocks.empty()) {
    Outcome<ImportedFabric> fabric = fabric_of_blocks(lines.blocks, where, imported.notes);
    if (!fabric) return fabric.problems();
    imported.summary = fmt::format("{} blocks with {} nodes; no rates", lines.blocks.size(), fabric->hosts.size());
    if (!lines.block_sizes.empty())
      imported.notes.push_back("BlockSizes=" + scan::shown(lines.block_sizes) + " is for Slurm's planning only");
    imported.holds = std::move(fabric.value());
  } else if (!lines.rings.empty()) {
    Outcome<ImportedOrder> order = order_of_rings(lines.rings, where);
    if (!order) return order.problems();
    imported.summary = fmt::format("the order of nodes in {} rings", order->rings.size());
    imported.holds = std::move(order.value());
  } else {
    return scan::problem("no_nodes", where, 0, "the file describes no switch, block or ring");
  }
  return imported;
}

}  // namespace cpfit
