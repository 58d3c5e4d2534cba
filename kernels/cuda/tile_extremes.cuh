// The extremes of every tile of a mixed block: one warp per tile reads its rows' intervals or its keys' numbers.
#pragma once

#include "kernels/cuda/block_mask.cuh"
#include "kernels/cuda/ptx.cuh"

namespace cpfit::kernels::device {

/// Lanes of a warp hold parts of the extremes of one tile; all get the whole.
__device__ __forceinline__ int warp_least(int value) {
  for (int step = 16; step > 0; step /= 2) {
    const int other = ptx::shuffle_xor(value, step);
    value = other < value ? other : value;
  }
  return value;
}
__device__ __forceinline__ int warp_greatest(int value) {
  for (int step = 16; step > 0; step /= 2) {
    const int other = ptx::shuffle_xor(value, step);
    value = other > value ? other : value;
  }
  return value;
}

/// One warp of kLanes threads per tile: blocks [0, query tiles) fill `rows`, the rest `keys`. A template, so that a header may
/// hold it.
template <int kLanes>
__global__ void __launch_bounds__(kLanes)
    tile_extremes_kernel(DeviceMask mask, int query_tile, int key_tile, RowExtremes* rows, KeyExtremes* keys) {
  const int lane = ptx::thread_x();
  const int query_tiles = tiles_in(mask.queries, query_tile);
  if (ptx::block_x() < query_tiles) {
    RowExtremes mine;
    const int begin = ptx::block_x() * query_tile;
    for (int row = begin + lane; row < begin + query_tile && row < mask.queries; row += kLanes) mine.take(mask.range(row));
    const RowExtremes all = {warp_least(mine.low_begin), warp_greatest(mine.high_begin), warp_least(mine.low_end),
                             warp_greatest(mine.high_end)};
    if (lane == 0) rows[ptx::block_x()] = all;
    return;
  }
  KeyExtremes mine;
  const int tile = ptx::block_x() - query_tiles;
  for (int key = tile * key_tile + lane; key < (tile + 1) * key_tile && key < mask.keys; key += kLanes) {
    const int position = mask.position(key);
    mine.low = position < mine.low ? position : mine.low;
    mine.high = position > mine.high ? position : mine.high;
  }
  const KeyExtremes all = {warp_least(mine.low), warp_greatest(mine.high)};
  if (lane == 0) keys[tile] = all;
}

}  // namespace cpfit::kernels::device
