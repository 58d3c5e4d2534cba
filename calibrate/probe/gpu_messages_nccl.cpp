#include "calibrate/probe/gpu_messages.h"
#include "kernels/cuda/staged_transport.h"
#include "kernels/transport/nccl_transport.h"

namespace cpfit::probe {

std::unique_ptr<kernels::Transport> make_gpu_messages(kernels::DeviceOperators& operators, kernels::Transport& host,
                                                      bool gpu_per_rank, std::chrono::milliseconds timeout,
                                                      bool native_reductions) {
  if (!gpu_per_rank) return kernels::make_staged_transport(operators, host);
  kernels::NcclOptions options;
  options.timeout = timeout;
  options.native_reductions = native_reductions;
  return kernels::make_nccl_transport(operators, kernels::share_nccl_id(host), host.rank(), host.size(), options);
}

std::string gpu_messages_version() { return kernels::nccl_version(); }

}  // namespace cpfit::probe
