// What cpfit-bench can be asked to do, by name. Every rank of a job calls a probe with the same options; rank 0 speaks.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "calibrate/probe/progress.h"
#include "kernels/core/transport.h"

namespace cpfit::probe {

/// As given on the command line.
struct BenchOptions {
  std::vector<std::string> probes;
  std::string backend = "host";
  std::string job;                            // verify-case: the file of cases, one JSON object a line (kernels/verify/case.h)
  std::string results;                        // verify-case: the folder that the tensors go to
  std::chrono::milliseconds timeout{60'000};  // a rank waits no longer for another
};

struct Probe {
  std::string name;
  std::string summary;
  /// Throws Error when the world fails; every rank must come to the same end.
  void (*run)(const BenchOptions& options, kernels::Transport& transport, ProgressLines& progress);
};

[[nodiscard]] const std::vector<Probe>& probes();

/// Runs each case of options.job on the ranks of the transport and leaves what kernels::read_rank reads:
/// FOLDER/case<i>.rank<r>.bin for the i-th line. Rank 0 gathers and writes, so the folder need not be shared between machines.
/// The judging is done by whoever started this (`cpfit verify`).
void verify_case(const BenchOptions& options, kernels::Transport& transport, ProgressLines& progress);

}  // namespace cpfit::probe
