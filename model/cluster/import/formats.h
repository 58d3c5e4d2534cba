// The importers, one per format: text to ImportedTopology. Private to this folder; import.h chooses among them. All answer
// damaged text with Problems and bound what they build.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "model/cluster/import/imported.h"
#include "model/quantity/problem.h"

namespace cpfit {

inline constexpr std::size_t kMostDevices = 512;    // of one host
inline constexpr std::size_t kMostHosts = 131072;   // of one fabric
inline constexpr std::size_t kMostSwitches = 4096;  // routes are tabled per pair of pod and switch
inline constexpr int kMostXmlDepth = 128;           // nesting that is followed

[[nodiscard]] Outcome<ImportedTopology> import_smi_topo(std::string_view text, const std::string& where);
[[nodiscard]] Outcome<ImportedTopology> import_rocm_topo(std::string_view text, const std::string& where);
[[nodiscard]] Outcome<ImportedTopology> import_nccl_topology(std::string_view text, const std::string& where);
[[nodiscard]] Outcome<ImportedTopology> import_nccl_graph(std::string_view text, const std::string& where);
[[nodiscard]] Outcome<ImportedTopology> import_nccl_log(std::string_view text, const std::string& where);
[[nodiscard]] Outcome<ImportedTopology> import_hwloc(std::string_view text, const std::string& where);
[[nodiscard]] Outcome<ImportedTopology> import_slurm_conf(std::string_view text, const std::string& where);
[[nodiscard]] Outcome<ImportedTopology> import_slurm_yaml(std::string_view text, const std::string& where);
[[nodiscard]] Outcome<ImportedTopology> import_ibnetdiscover(std::string_view text, const std::string& where);

}  // namespace cpfit
