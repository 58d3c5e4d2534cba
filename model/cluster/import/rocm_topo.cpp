// rocm-smi --showtopotype (and the same table within --showtopo): XGMI or PCIE between GPUs. How many links, and where the PCIe
// devices hang, is not in it.
#include <fmt/format.h>

#include <algorithm>

#include "model/cluster/import/formats.h"
#include "model/cluster/import/scan.h"

namespace cpfit {

Outcome<ImportedTopology> import_rocm_topo(std::string_view text, const std::string& where) {
  const std::string plain = scan::without_escapes(text);
  const std::vector<std::string_view> lines = scan::lines(plain);
  std::size_t at = 0;
  while (at < lines.size() && lines[at].find("Link Type between two GPUs") == std::string_view::npos) ++at;
  if (at == lines.size()) {
    return scan::problem("no_matrix", where, 0, "the table \"Link Type between two GPUs\" is missing: weights and hops say less",
                         "save the output of `rocm-smi --showtopotype`");
  }
  for (++at; at < lines.size() && scan::trimmed(lines[at]).empty();) ++at;
  const std::vector<std::string_view> names = at < lines.size() ? scan::words(lines[at]) : std::vector<std::string_view>{};
  if (names.empty() || names.size() > kMostDevices || !names[0].starts_with("GPU"))
    return scan::problem("no_matrix", where, at + 1, "no header of GPU names was found");
  const std::size_t n = names.size();
  std::vector<std::vector<std::string>> cells;
  for (++at; at < lines.size() && cells.size() < n; ++at) {
    const std::vector<std::string_view> words = scan::words(lines[at]);
    if (words.size() != n + 1 || words[0] != names[cells.size()]) break;
    cells.emplace_back(words.begin() + 1, words.end());
  }
  if (cells.size() < n) return scan::problem("cut", where, at + 1, fmt::format("{} of {} rows are there", cells.size(), n));

  ImportedHost host;
  for (const std::string_view name : names) host.devices.push_back({VertexKind::kGpu, std::string(name), std::nullopt, 1});
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = i + 1; j < n; ++j) {
      if (cells[i][j] != cells[j][i] || (cells[i][j] != "XGMI" && cells[i][j] != "PCIE")) {
        return scan::problem("code", where, 0,
                             fmt::format("{} and {} say '{}' and '{}'", scan::shown(names[i]), scan::shown(names[j]),
                                         scan::shown(cells[i][j]), scan::shown(cells[j][i])),
                             "cells read XGMI or PCIE, the same both ways");
      }
      if (cells[i][j] == "XGMI")
        host.cables.push_back({static_cast<std::int32_t>(i), static_cast<std::int32_t>(j), LinkClass::kXgmi, std::nullopt, 1});
    }
  }
  const auto cpu = static_cast<std::int32_t>(n);
  host.devices.push_back({VertexKind::kCpu, "", std::nullopt, 1});
  for (std::int32_t i = 0; i < cpu; ++i) host.cables.push_back({i, cpu, LinkClass::kPcie, std::nullopt, 1});
  host.gpu_reason = "rocm-smi's table names no GPU";
  ImportedTopology imported;
  imported.format = TopologyFormat::kRocmTopo;
  imported.where = where;
  imported.summary = fmt::format("one host with {} GPUs; link types, no rates, no NICs", n);
  imported.notes = {"one xGMI link per pair is assumed: the table does not count them",
                    "all GPUs are drawn under one CPU: the table does not say where they hang"};
  imported.holds = std::move(host);
  return imported;
}

}  // namespace cpfit
