// cpfit topology show and place: the graph as people read it, the hops of a recipe's groups on it, and a better placement.
#pragma once

#include <CLI/CLI.hpp>

namespace cpfit::cli {

/// `show` and `place`, below `cpfit topology`.
void add_topology_show(CLI::App& topology, int& exit_code);
void add_topology_place(CLI::App& topology, int& exit_code);

}  // namespace cpfit::cli
