#include <fmt/format.h>

#include "calibrate/probe/ranks.h"

namespace cpfit::probe {

std::string ranks_text() { return "one rank only: built without MPI (libopenmpi-dev)"; }

std::string mpi_version() { return ""; }

int run_as_rank(std::chrono::milliseconds timeout, const std::function<void(kernels::Transport&)>& work, bool) {
  if (!is_one_of_several()) return run_alone(timeout, work);
  fmt::print(stderr, "cpfit-bench: started as one of several ranks, but {}\n", ranks_text());
  return 4;  // waived
}

}  // namespace cpfit::probe
