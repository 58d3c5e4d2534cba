#include "model/cluster/import/import.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "model/cluster/import/formats.h"
#include "model/cluster/import/scan.h"
#include "model/cluster/topology_file.h"

namespace cpfit {
namespace {

constexpr std::size_t kMostLines = 4'000'000;
constexpr std::size_t kLongestLine = std::size_t{1} << 20;

Problems check_size(std::string_view text, const std::string& where) {
  if (text.size() > kMostImportBytes) {
    return {scan::problem("too_large", where, 0, fmt::format("more than {} bytes", kMostImportBytes),
                          "a topology file is much smaller: is this the right file?")};
  }
  std::size_t lines = 0;
  for (std::size_t at = 0; at < text.size(); ++lines) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (end - at > kLongestLine && text.size() > kMostXmlBytes)
      return {scan::problem("too_large", where, lines + 1, fmt::format("a line of {} bytes", end - at))};
    at = end + 1;
  }
  if (lines > kMostLines) return {scan::problem("too_large", where, 0, fmt::format("{} lines", lines))};
  return {};
}

}  // namespace

Outcome<ImportedTopology> import_topology(const std::string& whole, const std::string& where) {
  if (Problems found = check_size(whole, where); !found.empty()) return found;
  std::string_view text = whole;
  const TopologyFormat format = detect_format(text);
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // Windows editors mark UTF-8 so
  switch (format) {
    case TopologyFormat::kSmiTopo:
      return import_smi_topo(text, where);
    case TopologyFormat::kRocmTopo:
      return import_rocm_topo(text, where);
    case TopologyFormat::kNcclTopology:
      return import_nccl_topology(text, where);
    case TopologyFormat::kNcclGraph:
      return import_nccl_graph(text, where);
    case TopologyFormat::kNcclLog:
      return import_nccl_log(text, where);
    case TopologyFormat::kHwloc:
      return import_hwloc(text, where);
    case TopologyFormat::kSlurmConf:
      return import_slurm_conf(text, where);
    case TopologyFormat::kSlurmYaml:
      return import_slurm_yaml(text, where);
    case TopologyFormat::kIbnetdiscover:
      return import_ibnetdiscover(text, where);
    case TopologyFormat::kSmiP2p:
      return scan::problem("p2p", where, 0, "`nvidia-smi topo -p2p` says which GPUs may talk directly, not over what",
                           "save the output of `nvidia-smi topo -m`");
    case TopologyFormat::kTopographModel:
      return scan::problem("topograph", where, 0, "this is a simulation model of topograph, not a file of Slurm",
                           "let topograph write topology.conf or topology.yaml and import that");
    case TopologyFormat::kGzip:
      return scan::problem("compressed", where, 0, "the file is compressed by gzip",
                           fmt::format("gunzip -c {} > FILE, then import FILE", where));
    case TopologyFormat::kBinary:
      return scan::problem("binary", where, 0, "the file is no plain text (NUL bytes or UTF-16)",
                           "save it as UTF-8; PowerShell: `... | Out-File -Encoding utf8 FILE`");
    case TopologyFormat::kOwn:
      return scan::problem("json", where, 0, "this is JSON: the project's own format, or no topology at all",
                           "`cpfit topology check FILE` reads the project's own format");
    case TopologyFormat::kUnknown:
      break;
  }
  return scan::problem("unknown_format", where, 0, "no known topology format was recognised",
                       "known: nvidia-smi topo -m, rocm-smi --showtopotype, NCCL topology, graph and INFO log, hwloc XML, Slurm "
                       "topology.conf and .yaml, ibnetdiscover, cpfit-topology/1");
}

Outcome<std::string> read_import_file(const std::string& path) {
  if (std::filesystem::is_directory(path))
    return Problem{"topology.unreadable", path, "this is a folder, not a topology file", "name a file in it"};
  std::ifstream file(path, std::ios::binary);
  std::string text;
  constexpr std::size_t kPiece = std::size_t{1} << 16;
  while (file && text.size() <= kMostImportBytes) {
    const std::size_t before = text.size();
    text.resize(before + kPiece);
    file.read(text.data() + before, static_cast<std::streamsize>(kPiece));
    text.resize(before + static_cast<std::size_t>(file.gcount()));
  }
  if (file.bad() || (text.empty() && !file.eof()))
    return Problem{"topology.unreadable", path, "the topology file cannot be read", "check the path and its permissions"};
  if (text.size() > kMostImportBytes) {
    return scan::problem("too_large", path, 0, fmt::format("more than {} bytes", kMostImportBytes),
                         "a topology file is much smaller: is this the right file?");
  }
  return text;
}

Outcome<ImportedCluster> read_any_topology(const std::string& text, const std::string& where, const ImportOptions& options) {
  if (detect_format(text) == TopologyFormat::kOwn) {
    Outcome<Cluster> cluster = read_topology(text, where, options.nodes);
    if (!cluster) return cluster.problems();
    return ImportedCluster{std::move(cluster.value()), {}};
  }
  const Outcome<ImportedTopology> imported = import_topology(text, where);
  if (!imported) return imported.problems();
  return complete_topology(*imported, options);
}

Outcome<ImportedCluster> load_any_topology(const std::string& path, const ImportOptions& options) {
  const Outcome<std::string> text = read_import_file(path);
  if (!text) return text.problems();
  return read_any_topology(*text, path, options);
}

}  // namespace cpfit
