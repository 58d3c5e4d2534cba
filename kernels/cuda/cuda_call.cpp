#include "kernels/cuda/cuda_call.h"

#include <fmt/format.h>

#include <cstdlib>

#include "kernels/core/require.h"
#include "model/quantity/problem.h"

namespace cpfit::kernels::cuda {

void check(cudaError_t status, const char* operation) {
  if (status == cudaSuccess) return;
  throw Error(fmt::format("CUDA: {}: {}: {}", operation, cudaGetErrorName(status), cudaGetErrorString(status)));
}

void not_compiled(const char* operation, const char* from, const char* to) {
  require(false, "CUDA: {}: {} with {} is not compiled", operation, from, to);
  std::abort();
}

}  // namespace cpfit::kernels::cuda
