#include "calibrate/probe/ranks.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "kernels/transport/in_process.h"
#include "model/quantity/problem.h"

namespace cpfit::probe {

bool is_one_of_several() {
  // Open MPI, MPICH and Slurm tell the number of processes in the environment.
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    const char* value = std::getenv(variable);
    if (value != nullptr && std::atoi(value) > 1) return true;
  }
  return false;
}

int run_alone(std::chrono::milliseconds timeout, const std::function<void(kernels::Transport&)>& work) {
  try {
    kernels::run_ranks(1, timeout, work);
    return 0;
  } catch (const Error& failure) {
    fmt::print(stderr, "cpfit-bench: {}\n", failure.what());
    return 1;
  }
}

}  // namespace cpfit::probe
