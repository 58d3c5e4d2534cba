#include "calibrate/probe/ranks.h"
#include "kernels/transport/mpi_transport.h"

namespace cpfit::probe {

std::string ranks_text() { return "several ranks run as MPI processes"; }

int run_as_rank(std::chrono::milliseconds timeout, const std::function<void(kernels::Transport&)>& work) {
  if (!is_one_of_several()) return run_alone(timeout, work);
  const kernels::MpiSession session;
  kernels::MpiTransport transport(timeout);
  try {
    work(transport);
    transport.barrier();  // nobody leaves while another may still fail
    return 0;
  } catch (const std::exception& failure) {
    transport.abandon(std::string("cpfit-bench: ") + failure.what());
  }
}

}  // namespace cpfit::probe
