// One rank on one GPU that is its own neighbour, with copies that run beside its kernels on a stream of their own: what hides and
// what does not can be timed without a second GPU. As loopback.h, which copies in the operators' order, it computes no attention.
#pragma once

#include <memory>

#include "kernels/cuda/cuda_operators.h"

namespace cpfit::kernels {

/// A transport of `size` ranks whose rank is 0: the i-th send of a batch goes into its i-th receive. Borrows the operators.
[[nodiscard]] std::unique_ptr<Transport> make_cuda_loopback(DeviceOperators& operators, std::int32_t size);

}  // namespace cpfit::kernels
