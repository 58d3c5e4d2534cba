// What completes an import: the GPU, the preset whose values stand in, and the building of clusters from fabrics. Private to this
// folder.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/cluster/cluster_spec.h"
#include "model/cluster/import/import.h"

namespace cpfit {

struct ImportDefaults {
  Gpu gpu;
  ClusterSpec spec;                        // the first preset with that GPU, else the nearest
  std::optional<BytesPerSecond> nic_rate;  // of one port, when the person gave it
};

/// Problems: no GPU named, unknown GPU, unreadable rate.
[[nodiscard]] Outcome<ImportDefaults> import_defaults(const ImportedTopology& imported, const ImportOptions& options,
                                                      std::vector<std::string>& notes);

/// Puts the preset's host on every host of the fabric: fills gpus_per_node, nodes and topology. `nodes` 0: all of them.
[[nodiscard]] Problems complete_fabric(const ImportedFabric& fabric, const std::string& where, const ImportDefaults& defaults,
                                       std::int64_t nodes, ImportedCluster& out);

}  // namespace cpfit
