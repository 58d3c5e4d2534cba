// What the attention kernels take by value, filled by the launchers.
//   scale_log2 = scale / ln 2, so that exp(scale x - lse) = exp2(scale_log2 x - lse / ln 2)
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/cuda/block_mask.cuh"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/shared_tile.cuh"

namespace cpfit::kernels::device {

/// A tensor [rows][heads][columns] that is read.
template <class Element>
struct Input {
  const Element* data = nullptr;
  int rows = 0;
  int heads = 0;
  int columns = 0;

  __device__ __forceinline__ HeadRows<Element> head(int number) const {
    return {data + std::int64_t{number} * columns, std::int64_t{heads} * columns, rows, columns};
  }
};

/// A tensor [rows][heads][columns] that is written: in the inputs' type, or in fp32 when `wide`.
template <class Element>
struct Output {
  void* data = nullptr;
  bool wide = false;
  int heads = 0;
  int columns = 0;  // even

  /// Columns (column, column + 1); nothing beyond the last one. Rounds once.
  __device__ __forceinline__ void store_pair(std::int64_t row, int head, int column, float a, float b) const {
    if (column >= columns) return;
    const std::int64_t place = (row * heads + head) * columns + column;
    if (wide) {
      *reinterpret_cast<float2*>(static_cast<float*>(data) + place) = float2{a, b};
    } else {
      *reinterpret_cast<std::uint32_t*>(static_cast<Element*>(data) + place) = pack_pair<Element>(a, b);
    }
  }
};

template <class Element>
struct ForwardArguments {
  DeviceMask mask;
  Input<Element> q, k, v;
  Output<Element> out;
  float* lse = nullptr;  // [s_q][h_q]
  int heads = 0;         // h_q
  int group = 1;         // h_q / h_kv
  float scale_log2 = 0;
};

template <class Element>
struct BackwardArguments {
  DeviceMask mask;
  Input<Element> q, k, v, dout;
  Output<Element> dq, dk, dv;
  const float* lse = nullptr;    // [s_q][h_q], final
  const float* delta = nullptr;  // [s_q][h_q], of the final out
  int heads = 0;                 // h_q
  int group = 1;                 // h_q / h_kv
  float scale = 0;
  float scale_log2 = 0;
};

/// lse / ln 2 of a row for exp2(scale_log2 x - it); a row that attended to nothing gets +inf, so that its weights are 0.
__device__ __forceinline__ float log2_sum(float lse) {
  constexpr float kLog2E = 1.44269504088896341F;
  return lse - lse == 0.0F ? lse * kLog2E : INFINITY;
}

}  // namespace cpfit::kernels::device
