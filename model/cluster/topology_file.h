// Clusters as files: the project's own JSON format "cpfit-topology/1" (docs/topology.md). Three forms, by which key is there:
//   "base"   a preset with some values set:     {"base": "dgx-h100", "set": {"nic_rate": "200 Gb/s"}}
//   "host"   one host and a fabric by rule:     {"gpu": ..., "host": {"vertices", "links"}, "fabric": {...}, "domain": {...}}
//   "graph"  every vertex and link written out: {"gpu": ..., "graph": {"vertices", "links"}}   (what write_topology makes)
// Reading answers with problems that name file and place; an unreadable file is a Problem too (a person's input).
#pragma once

#include <cstdint>
#include <string>

#include "model/cluster/cluster.h"
#include "model/quantity/problem.h"

namespace cpfit {

inline constexpr const char* kTopologySchema = "cpfit-topology/1";

/// `nodes` 0: as many as the file says ("nodes", else 1). A graph has the nodes it has: another number is a problem. `where`
/// names the file in messages.
[[nodiscard]] Outcome<Cluster> read_topology(const std::string& text, const std::string& where, std::int64_t nodes);

/// The whole graph; reading it back gives the same vertices, links and routes.
[[nodiscard]] std::string write_topology(const Cluster& cluster);

}  // namespace cpfit
