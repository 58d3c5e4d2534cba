// Messages between GPUs. Two sources implement it: with NCCL and without; the build takes one.
#pragma once

#include <chrono>
#include <memory>

#include "kernels/cuda/cuda_operators.h"

namespace cpfit::probe {

/// All ranks of `host` call it. NCCL where it was built in and every rank has a GPU of its own; else by way of the host.
[[nodiscard]] std::unique_ptr<kernels::Transport> make_gpu_messages(kernels::DeviceOperators& operators, kernels::Transport& host,
                                                                    bool gpu_per_rank, std::chrono::milliseconds timeout);

}  // namespace cpfit::probe
