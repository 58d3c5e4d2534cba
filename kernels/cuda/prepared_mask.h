// A block's mask as kernels take it, with the extremes of its tiles when it is mixed.
#pragma once

#include "kernels/core/operators.h"
#include "kernels/cuda/block_mask.cuh"
#include "kernels/cuda/cuda_call.h"

namespace cpfit::kernels::cuda {

struct PreparedMask {
  device::DeviceMask mask;
  Scratch extremes;  // in the stream's order: may go once the kernel that reads it was launched
};

/// Launches what finds the extremes of tiles of query_tile rows and key_tile keys; for full and causal blocks there is none.
[[nodiscard]] PreparedMask prepare_mask(cudaStream_t stream, const BlockMask& mask, std::int64_t queries, std::int64_t keys,
                                        int query_tile, int key_tile);

}  // namespace cpfit::kernels::cuda
