// The ranks of a job: MPI processes where a launcher started several, else this process alone. Two sources implement it: with MPI
// and without; the build takes one.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "kernels/core/transport.h"

namespace cpfit::probe {

/// "as MPI processes", or why there can only be one.
[[nodiscard]] std::string ranks_text();

/// As the library names itself, first line; empty without MPI.
[[nodiscard]] std::string mpi_version();

/// Calls `work` with this rank's transport and returns the process's exit code. A rank whose work throws says why on standard
/// error and ends the job, after the other ranks have heard of it. `timeout`: of every wait for another rank. `measures`: waits
/// poll without a pause, as a rank with a core of its own may.
[[nodiscard]] int run_as_rank(std::chrono::milliseconds timeout, const std::function<void(kernels::Transport&)>& work,
                              bool measures = false);

/// Did a launcher (mpirun, srun) start this process as one of several?
[[nodiscard]] bool is_one_of_several();
/// work on the only rank.
[[nodiscard]] int run_alone(std::chrono::milliseconds timeout, const std::function<void(kernels::Transport&)>& work);

}  // namespace cpfit::probe
