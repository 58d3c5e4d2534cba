// Cases run by processes of cpfit-bench under mpirun, on the host or on GPUs: started once per degree, judged here.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/verify/suite_run.h"

namespace cpfit::cli {

struct BackendRun {
  std::vector<kernels::CaseReport> reports;  // in the order of the cases
  std::string waived;                        // why nothing could run here; empty: it ran
};

/// `backend`: "mpi" or "cuda". A degree whose processes fail fails all of its cases, with what they said.
[[nodiscard]] BackendRun run_on_processes(const std::vector<kernels::Case>& cases, const std::string& backend,
                                          kernels::TruthShelf& shelf, const std::function<void(double)>& progress);

}  // namespace cpfit::cli
