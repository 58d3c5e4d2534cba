// The same workloads in SimGrid (S4U, model CM02 without its TCP factors: plain max-min fairness), to compare times and speed
// with.
#pragma once

#include <string>
#include <vector>

#include "tests/sim/engine_workload.h"

namespace cpfit::engine {

struct Peer {
  std::vector<std::vector<double>> completions;  // (streams, exchanges) seconds
  double seconds = 0;                            // processor time of the simulation alone, platform and actors made before
  std::string absent;                            // why there is nothing above: SimGrid is not built in, or it failed
};

/// Runs in a child process: SimGrid keeps its state in globals. The mailboxes are looked up before the clock runs.
[[nodiscard]] Peer run_in_simgrid(const Workload& workload);

}  // namespace cpfit::engine
