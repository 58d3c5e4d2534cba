// Operators on the CPU, for in-process ranks and MPI processes: BLAS products, our own softmax. One object per rank; objects are
// independent of each other, each is used by one thread at a time.
#pragma once

#include <functional>
#include <memory>

#include "kernels/core/operators.h"

namespace cpfit::kernels {

/// sum kFp64: computes in double, for inputs of any type; the truth of a strategy. kFp32: computes in float; inputs of 16 bits
/// are multiplied as tensor cores do (block_attention.h).
/// `between_tiles`, where given, is called after every tile of scores (some 0.1 ms of work): messages that only move inside
/// their transport's calls move there. It must not call these operators.
[[nodiscard]] std::unique_ptr<Operators> make_cpu_operators(Number sum, std::function<void()> between_tiles = {});

}  // namespace cpfit::kernels
