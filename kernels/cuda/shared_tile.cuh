// A tile of 16-bit elements in shared memory, and its ways into the fragments of tensor cores. Rows are kColumns long (a multiple
// of 64, so 128 bytes or a multiple); the 16-byte chunks of a row are stored in an order that depends on the row (chunk XOR
// row mod 8), so that the eight rows of one ldmatrix lie in different banks.
#pragma once

#include <cstdint>

#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/ptx.cuh"

namespace cpfit::kernels::device {

/// One head's part of a tensor in global memory: rows `stride` elements apart, `columns` of them valid (a multiple of 8).
template <class Element>
struct HeadRows {
  const Element* first = nullptr;  // (0, 0), aligned to 16 bytes
  std::int64_t stride = 0;         // a multiple of 8
  int rows = 0;
  int columns = 0;
};

template <class Element, int kRows, int kColumns>
struct SharedTile {
  static_assert(kColumns % 64 == 0 && kRows % 16 == 0);
  static constexpr int kRowBytes = kColumns * 2;
  static constexpr int kBytes = kRows * kRowBytes;
  static constexpr int kChunks = kColumns / 8;

  std::uint32_t address;  // of shared memory, aligned to 128 bytes

  /// Starts copying rows [begin, begin + kRows) of `from` by all `threads` of the block; zeros outside of it.
  __device__ __forceinline__ void start_copy(const HeadRows<Element>& from, int begin, int thread, int threads) const {
    // Unrolled, the addresses of all copies would want registers at once.
#pragma unroll 1
    for (int i = thread; i < kRows * kChunks; i += threads) {
      const int row = i / kChunks;
      const int number = i % kChunks;
      const bool valid = begin + row < from.rows && number * 8 < from.columns;
      const std::int64_t offset = valid ? (begin + row) * from.stride + number * 8 : 0;
      ptx::copy_16_async(address + row * kRowBytes + (number ^ (row & 7)) * 16, from.first + offset, valid);
    }
  }

  /// What a lane reads of 16 x 16 elements: its row and its chunk (0 or 1). Everything else is known when compiling: rows are
  /// multiples of 8 and columns multiples of 16 further, so they change an address by an addition and an exclusive or.
  struct Lane {
    std::uint32_t first;
    __device__ __forceinline__ std::uint32_t at(int row, int column) const {
      return (first + row * kRowBytes + column / 64 * 128) ^ (column / 8 % 8 * 16);
    }
  };
  __device__ __forceinline__ Lane lane_at(int row, int chunk) const {
    return {address + row * kRowBytes + (chunk ^ (row & 7)) * 16};
  }
  /// A fragment at (row, column): rows [row, row + 16) x columns [column, column + 16). Matrices: top, bottom, then right.
  __device__ __forceinline__ Lane a_lane(int lane) const { return lane_at(lane & 15, lane / 16); }
  /// Two B fragments at (row, column) of this tile itself: B(k, n) = tile(row + k, column + n), k and n < 16, loaded transposed.
  __device__ __forceinline__ Lane b_lane(int lane) const { return a_lane(lane); }
  /// Two B fragments at (row, column) of this tile's transpose: B(k, n) = tile(row + n, column + k), k and n < 16.
  __device__ __forceinline__ Lane b_transpose_lane(int lane) const { return lane_at((lane & 7) + lane / 16 * 8, lane / 8 & 1); }
};

/// c[m][n] += rows of `a` [16 kMTiles from a_row][kDepth] times the rows of `b` [8 kNTiles from 0][kDepth], transposed.
template <class Element, int kMTiles, int kNTiles, int kDepth, class ATile, class BTile>
__device__ __forceinline__ void multiply_rows(float (&c)[kMTiles][kNTiles][4], const ATile& a, int a_row, const BTile& b,
                                              int lane) {
  const auto a_lane = a.a_lane(lane);
  const auto b_lane = b.b_transpose_lane(lane);
#pragma unroll 4
  for (int k = 0; k < kDepth; k += 16) {
    std::uint32_t a_fragment[kMTiles][4];
#pragma unroll
    for (int m = 0; m < kMTiles; ++m) ptx::load_matrices(a_fragment[m], a_lane.at(a_row + 16 * m, k));
#pragma unroll
    for (int n = 0; n < kNTiles; n += 2) {
      std::uint32_t b_fragment[4];
      ptx::load_matrices(b_fragment, b_lane.at(8 * n, k));
#pragma unroll
      for (int m = 0; m < kMTiles; ++m) {
        ptx::multiply_add<Element>(c[m][n], a_fragment[m], b_fragment[0], b_fragment[1]);
        ptx::multiply_add<Element>(c[m][n + 1], a_fragment[m], b_fragment[2], b_fragment[3]);
      }
    }
  }
}

/// The same accumulators as an A operand: pairs of n tiles become k steps, rounded to Element.
template <class Element, int kNTiles>
__device__ __forceinline__ void to_a_fragments(std::uint32_t (&a)[kNTiles / 2][4], const float (&c)[kNTiles][4]) {
#pragma unroll
  for (int k = 0; k < kNTiles / 2; ++k) {
    a[k][0] = pack_pair<Element>(c[2 * k][0], c[2 * k][1]);
    a[k][1] = pack_pair<Element>(c[2 * k][2], c[2 * k][3]);
    a[k][2] = pack_pair<Element>(c[2 * k + 1][0], c[2 * k + 1][1]);
    a[k][3] = pack_pair<Element>(c[2 * k + 1][2], c[2 * k + 1][3]);
  }
}

/// c[m][n] += a (16 kMTiles x 16 kSteps) times the rows of `b` [16 kSteps from 0][8 kNTiles].
template <class Element, int kMTiles, int kNTiles, int kSteps, class BTile>
__device__ __forceinline__ void multiply_fragments(float (&c)[kMTiles][kNTiles][4], const std::uint32_t (&a)[kMTiles][kSteps][4],
                                                   const BTile& b, int lane) {
  const auto b_lane = b.b_lane(lane);
#pragma unroll
  for (int k = 0; k < kSteps; ++k) {
#pragma unroll
    for (int n = 0; n < kNTiles; n += 2) {
      std::uint32_t b_fragment[4];
      ptx::load_matrices_transposed(b_fragment, b_lane.at(16 * k, 8 * n));
#pragma unroll
      for (int m = 0; m < kMTiles; ++m) {
        ptx::multiply_add<Element>(c[m][n], a[m][k], b_fragment[0], b_fragment[1]);
        ptx::multiply_add<Element>(c[m][n + 1], a[m][k], b_fragment[2], b_fragment[3]);
      }
    }
  }
}

}  // namespace cpfit::kernels::device
