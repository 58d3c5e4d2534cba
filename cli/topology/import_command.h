// cpfit topology import, and how every topology command finds its cluster.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "model/cluster/cluster.h"
#include "model/cluster/import/import.h"

namespace cpfit::cli {

/// A preset by name, else a file: the project's own format or another tool's (docs/topology.md). What an import assumed is told
/// on standard error.
[[nodiscard]] Outcome<Cluster> find_topology(const std::string& what, const ImportOptions& options);

/// --gpu and --nic-rate, for files of other tools.
void add_import_options(CLI::App& command, ImportOptions& options);

/// `import`, below `cpfit topology`.
void add_topology_import(CLI::App& topology, int& exit_code);

}  // namespace cpfit::cli
