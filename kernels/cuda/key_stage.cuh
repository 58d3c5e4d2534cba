// The double buffer of the kernels that own queries and walk over keys.
#pragma once

#include "kernels/cuda/block_mask.cuh"
#include "kernels/cuda/shared_tile.cuh"

namespace cpfit::kernels::device {

/// Half of the double buffer: a tile of keys, its values, the keys' numbers.
template <class Tiles>
struct KeyStage {
  typename Tiles::K k;
  typename Tiles::V v;
  int* positions;  // [kKeys]

  __device__ __forceinline__ KeyStage(unsigned char* memory, int number) {
    unsigned char* const begin = memory + number * Tiles::kStageBytes;
    k.address = ptx::shared_address(begin);
    v.address = ptx::shared_address(begin + Tiles::K::kBytes);
    positions = reinterpret_cast<int*>(begin + Tiles::K::kBytes + Tiles::V::kBytes);
  }
  __device__ __forceinline__ void start_copy(const HeadRows<typename Tiles::Element>& keys,
                                             const HeadRows<typename Tiles::Element>& values, const DeviceMask& mask, int tile,
                                             int thread) const {
    const int begin = tile * Tiles::kKeys;
    k.start_copy(keys, begin, thread, Tiles::kThreads);
    v.start_copy(values, begin, thread, Tiles::kThreads);
    for (int i = thread; i < Tiles::kKeys; i += Tiles::kThreads) positions[i] = mask.position(begin + i);
  }
};

}  // namespace cpfit::kernels::device
