// Messages between ranks whose operators are on a GPU, over a transport of host memory (MPI): by way of the host. For ranks that
// share one GPU, which NCCL refuses, and for nodes without NCCL; slow, and the host waits, so it proves and does not measure.
#pragma once

#include <memory>

#include "kernels/cuda/cuda_operators.h"

namespace cpfit::kernels {

/// Borrows both. One rank's operators, the same rank's transport.
[[nodiscard]] std::unique_ptr<Transport> make_staged_transport(DeviceOperators& operators, Transport& host);

}  // namespace cpfit::kernels
