// What cpfit-bench can be asked to do, by name: to measure (plan.h, measure.h), or to run one rank's part of cases of
// `cpfit verify`. Every rank of a job has the same options; rank 0 speaks.
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
  std::string out;                            // the measurement's file; empty: a line per point on standard error
  bool smoke = false;                         // tiny sizes: does it run?
  double budget_seconds = 0;                  // of the whole measurement; 0: as long as it takes
  std::uint64_t seed = 1;                     // of the order of points and of the numbers
  std::string link;                           // what carries the messages, in words; empty: told as far as it can be seen
};

inline constexpr const char* kVerifyCase = "verify-case";

/// Runs each case of options.job on the ranks of the transport and leaves what kernels::read_rank reads:
/// FOLDER/case<i>.rank<r>.bin for the i-th line. Throws Error when the world fails; every rank comes to the same end. Rank 0
/// gathers and writes, so the folder need not be shared between machines. The judging is done by whoever started this (`cpfit
/// verify`).
void verify_case(const BenchOptions& options, kernels::Transport& transport, ProgressLines& progress);

}  // namespace cpfit::probe
