// What Slurm's two files both say: switches with children or nodes, blocks of nodes. Private to the importers.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "model/cluster/import/imported.h"
#include "model/quantity/problem.h"

namespace cpfit {

struct SlurmEntry {
  std::size_t line = 0;
  std::string name;
  std::string children;  // host list of switches
  std::string nodes;     // host list of nodes
};

/// Switches (tree) to a fabric. A switch with nodes is a leaf. Problems: unknown child, two parents, loop, no nodes, too many.
[[nodiscard]] Outcome<ImportedFabric> fabric_of_switches(const std::vector<SlurmEntry>& switches, const std::string& where,
                                                         std::vector<std::string>& notes);
/// Blocks: one leaf per block below one spine.
[[nodiscard]] Outcome<ImportedFabric> fabric_of_blocks(const std::vector<SlurmEntry>& blocks, const std::string& where,
                                                       std::vector<std::string>& notes);
[[nodiscard]] Outcome<ImportedOrder> order_of_rings(const std::vector<SlurmEntry>& rings, const std::string& where);

}  // namespace cpfit
