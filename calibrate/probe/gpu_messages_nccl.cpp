#include "calibrate/probe/gpu_messages.h"
#include "kernels/cuda/staged_transport.h"
#include "kernels/transport/nccl_transport.h"

namespace cpfit::probe {

std::unique_ptr<kernels::Transport> make_gpu_messages(kernels::DeviceOperators& operators, kernels::Transport& host,
                                                      bool gpu_per_rank, std::chrono::milliseconds timeout) {
  if (!gpu_per_rank) return kernels::make_staged_transport(operators, host);
  kernels::NcclOptions options;
  options.timeout = timeout;
  return kernels::make_nccl_transport(operators, kernels::share_nccl_id(host), host.rank(), host.size(), options);
}

}  // namespace cpfit::probe
