// Messages between GPUs. Two sources implement it: with NCCL and without; the build takes one.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "kernels/cuda/cuda_operators.h"

namespace cpfit::probe {

/// All ranks of `host` call it. NCCL where it was built in and every rank has a GPU of its own; else by way of the host.
/// `native_reductions`: NCCL's own, which frameworks run, instead of sums in the order of ranks, which have the same bits
/// everywhere.
[[nodiscard]] std::unique_ptr<kernels::Transport> make_gpu_messages(kernels::DeviceOperators& operators, kernels::Transport& host,
                                                                    bool gpu_per_rank, std::chrono::milliseconds timeout,
                                                                    bool native_reductions = false);
/// Of NCCL; empty where it was not built in.
[[nodiscard]] std::string gpu_messages_version();

}  // namespace cpfit::probe
