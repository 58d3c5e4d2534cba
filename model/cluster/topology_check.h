// What is suspicious about a cluster's graph: what a person importing or writing one gets wrong. Findings are Problems whose code
// says how bad: "topology.error.*" (routes or rates would be nonsense), "topology.warning.*" (legal, rarely meant). Each kind is
// reported once, with the number of places and the first of them.
#pragma once

#include "model/cluster/cluster.h"
#include "model/quantity/problem.h"

namespace cpfit {

/// error.bandwidth    a link with no, negative or unreadable capacity
/// error.unreachable  GPU pairs without a route (all pairs up to 256 GPUs, each GPU with the first beyond)
/// error.no_nic       several hosts, and a GPU whose host path reaches no NIC
/// error.shape        GPUs per host or in all contradict what the cluster says
/// warning.asymmetric links without a twin the other way, or with another capacity there
/// warning.duplicate  two links of one class between the same ends
/// warning.scale_up   a GPU's NVLink or xGMI links do not add up to its data sheet (1 %)
/// warning.pcie       a GPU's PCIe link is faster than its data sheet
[[nodiscard]] Problems check_topology(const Cluster& cluster);
[[nodiscard]] bool is_error(const Problem& finding);

}  // namespace cpfit
