// A bf16 product by cuBLASLt, with sums in fp32, as the frameworks run it. The library is loaded when it is asked for.
#pragma once

#include <memory>

#include "calibrate/probe/bench_device.h"
#include "kernels/cuda/cuda_operators.h"

namespace cpfit::probe {

/// Throws Error where the library is missing or has no algorithm. Borrows the operators, on whose stream it runs.
[[nodiscard]] std::unique_ptr<MatrixProduct> make_gpu_product(kernels::DeviceOperators& operators, std::int64_t m, std::int64_t n,
                                                              std::int64_t k);

}  // namespace cpfit::probe
