// Topologies in other tools' formats, brought into the project's own Cluster. Reading says what the file holds; completing adds
// what it does not (rates, latencies, the fabric between hosts) from the GPU's data sheet and the first cluster preset with that
// GPU, and says so in notes.
//
//   nvidia-smi topo -m, rocm-smi --showtopotype    one host
//   NCCL / RCCL topology XML, hwloc XML            one host
//   Slurm topology.conf and .yaml, ibnetdiscover   fabric
//   NCCL graph XML, NCCL_DEBUG=INFO                order of ranks only: no cluster comes of it
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/cluster/cluster.h"
#include "model/cluster/import/imported.h"
#include "model/quantity/problem.h"

namespace cpfit {

inline constexpr std::size_t kMostImportBytes = std::size_t{64} << 20;  // ibnetdiscover of about 10,000 hosts
inline constexpr std::size_t kMostXmlBytes = std::size_t{4} << 20;      // a parsed tree takes up to 20 times the text

/// By content, not by file name. Never fails: kUnknown when nothing fits.
[[nodiscard]] TopologyFormat detect_format(std::string_view text);
[[nodiscard]] std::string_view name_of(TopologyFormat format);  // "nvidia-smi topo -m"

/// Reads a foreign format. Problems ("import.*"): not recognised, refused with the reason, damaged, too large. `where` names the
/// file in messages.
[[nodiscard]] Outcome<ImportedTopology> import_topology(const std::string& text, const std::string& where);

struct ImportOptions {
  std::string gpu = {};       // empty: what the file hints at
  std::int64_t nodes = 0;     // hosts; 0: one, or as many as the fabric has; fewer take the first ones
  std::string nic_rate = {};  // "400 Gb/s", of one port; empty: what the file says, else the preset
  bool bond_ports = true;     // several NIC ports per GPU under its switch become one NIC: a route takes one
};

struct ImportedCluster {
  Cluster cluster;
  std::vector<std::string> notes;  // what was found and what was assumed, a sentence each
};

/// Problems: GPU not named and not in the file, unknown GPU, nodes out of range, only an order of ranks.
[[nodiscard]] Outcome<ImportedCluster> complete_topology(const ImportedTopology& imported, const ImportOptions& options);

/// A topology file of any format, the project's own included, from its text.
[[nodiscard]] Outcome<ImportedCluster> read_any_topology(const std::string& text, const std::string& where,
                                                         const ImportOptions& options);
/// The same from a file; it is read up to kMostImportBytes.
[[nodiscard]] Outcome<ImportedCluster> load_any_topology(const std::string& path, const ImportOptions& options);
/// The text of a file, with a Problem when it cannot be read or is larger than kMostImportBytes.
[[nodiscard]] Outcome<std::string> read_import_file(const std::string& path);

}  // namespace cpfit
