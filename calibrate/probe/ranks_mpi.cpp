#include "calibrate/probe/ranks.h"

#include <fmt/format.h>

#include "kernels/transport/mpi_transport.h"

namespace cpfit::probe {

std::string ranks_text() { return "several ranks run as MPI processes"; }

std::string mpi_version() { return kernels::mpi_library_version(); }

int run_as_rank(std::chrono::milliseconds timeout, const std::function<void(kernels::Transport&)>& work, bool measures) {
  if (!is_one_of_several()) return run_alone(timeout, work);
  const kernels::MpiSession session;
  if (session.size() == 1) {
    fmt::print(stderr,
               "cpfit-bench: started as one of several, but MPI sees this process alone: the launcher is of another MPI.\n"
               "             Use the mpirun (or srun --mpi=...) of the MPI that this program was built with.\n");
    return 1;
  }
  kernels::MpiTransport transport(timeout);
  if (measures) transport.poll_without_pause(std::chrono::milliseconds(500));
  try {
    work(transport);
    transport.barrier();  // nobody leaves while another may still fail
    return 0;
  } catch (const std::exception& failure) {
    transport.abandon(std::string("cpfit-bench: ") + failure.what());
  }
}

}  // namespace cpfit::probe
