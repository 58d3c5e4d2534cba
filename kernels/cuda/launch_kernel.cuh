// One attention kernel onto a stream: tiles x heads blocks, dynamic shared memory beyond the default limit, every call checked.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "kernels/cuda/cuda_call.h"
#include "kernels/cuda/launch.h"
#include "model/quantity/problem.h"

namespace cpfit::kernels::cuda {

template <class Kernel, class Arguments>
void launch_kernel(const Target& target, const char* operation, Kernel kernel, int tiles, int heads, int threads,
                   int shared_bytes, const Arguments& arguments) {
  if (tiles == 0) return;
  if (shared_bytes > target.shared_bytes) {
    throw Error(std::string("CUDA: ") + operation + ": these heads need " + std::to_string(shared_bytes) +
                " bytes of shared memory, a block of this device has " + std::to_string(target.shared_bytes) +
                "; take smaller heads");
  }
  check(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes),
        operation);
  const dim3 grid(static_cast<unsigned>(tiles), static_cast<unsigned>(heads));
  kernel<<<grid, static_cast<unsigned>(threads), static_cast<std::size_t>(shared_bytes), target.stream>>>(arguments);
  check_launch(operation);
}

}  // namespace cpfit::kernels::cuda
