// The gradients of keys and values of one block on tensor cores. One thread block owns kKeys keys of one key/value head and walks
// over the tiles of queries that see them, head after head of the group that shares them (GQA), so dk and dv are summed in
// registers, in one order. Everything is computed transposed, keys as rows: then P^T and dS^T leave a product in the layout in
// which the next one takes its left operand, and shared memory holds inputs only.
//   P^T = exp(scale k q^T - lse)    dv = P^T dout    dS^T = P^T * (v dout^T - delta)    dk = scale dS^T q
// Source: cp_model.md E.2. Shapes as in attention_forward.cuh; dk as k, dv as v, dout as out.
#pragma once

#include <cstdint>

#include "kernels/cuda/attention_arguments.cuh"
#include "kernels/cuda/block_mask.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/shared_tile.cuh"

namespace cpfit::kernels::device {

template <class Element_, int kQk, int kV>
struct DkdvTiles {
  using Element = Element_;
  static constexpr int kWarps = 4;
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kKeys = 16 * kWarps;
  static constexpr int kRows = 32;  // queries of a tile: what the registers hold beside dk and dv
  using K = SharedTile<Element, kKeys, kQk>;
  using V = SharedTile<Element, kKeys, kV>;
  using Q = SharedTile<Element, kRows, kQk>;
  using Dout = SharedTile<Element, kRows, kV>;
  static constexpr int kStageBytes = Q::kBytes + Dout::kBytes + kRows * 16;
  static constexpr int kSharedBytes = K::kBytes + V::kBytes + 2 * kStageBytes;
};

/// What a query brings beside its row of q and dout.
struct alignas(16) QueryNumbers {
  float lse_log2;
  float delta;
  KeyRange range;
};

/// Half of the double buffer: a tile of queries of one head.
template <class Tiles>
struct QueryStage {
  typename Tiles::Q q;
  typename Tiles::Dout dout;
  QueryNumbers* numbers;  // [kRows]

  __device__ __forceinline__ QueryStage(unsigned char* memory, int number) {
    unsigned char* const begin = memory + number * Tiles::kStageBytes;
    q.address = ptx::shared_address(begin);
    dout.address = ptx::shared_address(begin + Tiles::Q::kBytes);
    numbers = reinterpret_cast<QueryNumbers*>(begin + Tiles::Q::kBytes + Tiles::Dout::kBytes);
  }
  __device__ __forceinline__ void start_copy(const BackwardArguments<typename Tiles::Element>& in, int head, int tile,
                                             int thread) const {
    const int begin = tile * Tiles::kRows;
    q.start_copy(in.q.head(head), begin, thread, Tiles::kThreads);
    dout.start_copy(in.dout.head(head), begin, thread, Tiles::kThreads);
    for (int i = thread; i < Tiles::kRows; i += Tiles::kThreads) {
      const int row = begin + i;
      const bool exists = row < in.q.rows;
      const std::int64_t place = std::int64_t{row} * in.heads + head;
      numbers[i] = {log2_sum(exists ? in.lse[place] : INFINITY), exists ? in.delta[place] : 0.0F, in.mask.range(row)};
    }
  }
};

/// A tile of queries of one of the group's heads.
struct QueryStep {
  TileStep at;
  int head = 0;  // of the group
};
__device__ __forceinline__ QueryStep next_query_step(const DeviceMask& mask, const KeyExtremes& keys, QueryStep step, int group,
                                                     int size) {
  step.at = next_query_tile(mask, keys, step.at.tile + 1, size);
  if (step.at.kind == TileKind::kEmpty && step.head + 1 < group) {
    ++step.head;
    step.at = next_query_tile(mask, keys, 0, size);
  }
  return step;
}

/// Grid: [tiles of keys][h_kv].
template <class Element, int kQk, int kV>
__global__ void __launch_bounds__(DkdvTiles<Element, kQk, kV>::kThreads)
    attention_dkdv_kernel(const BackwardArguments<Element> in) {
  using Tiles = DkdvTiles<Element, kQk, kV>;
  constexpr int kScoreTiles = Tiles::kRows / 8;
  const int thread = ptx::thread_x();
  const int lane = thread % 32;
  const int warp_key = thread / 32 * 16;
  const int key_begin = ptx::block_x() * Tiles::kKeys;
  const int kv_head = ptx::block_y();
  const int first_head = kv_head * in.group;

  unsigned char* const memory = ptx::dynamic_shared();
  const typename Tiles::K k_tile{ptx::shared_address(memory)};
  const typename Tiles::V v_tile{ptx::shared_address(memory + Tiles::K::kBytes)};
  unsigned char* const stages = memory + Tiles::K::kBytes + Tiles::V::kBytes;

  const KeyExtremes keys = in.mask.keys_of(ptx::block_x(), Tiles::kKeys);
  QueryStep step{next_query_tile(in.mask, keys, 0, Tiles::kRows), 0};
  int stage = 0;
  if (step.at.kind != TileKind::kEmpty) {
    k_tile.start_copy(in.k.head(kv_head), key_begin, thread, Tiles::kThreads);
    v_tile.start_copy(in.v.head(kv_head), key_begin, thread, Tiles::kThreads);
    QueryStage<Tiles>(stages, stage).start_copy(in, first_head, step.at.tile, thread);
  }
  ptx::commit_copies();

  // This thread's keys: half h: warp_key + 8 h + lane / 4.
  const int position[2] = {in.mask.position(key_begin + warp_key + lane / 4),
                           in.mask.position(key_begin + warp_key + 8 + lane / 4)};
  float dk[1][kQk / 8][4] = {};
  float dv[1][kV / 8][4] = {};

  while (step.at.kind != TileKind::kEmpty) {
    const QueryStep next = next_query_step(in.mask, keys, step, in.group, Tiles::kRows);
    if (next.at.kind != TileKind::kEmpty) {
      QueryStage<Tiles>(stages, 1 - stage).start_copy(in, first_head + next.head, next.at.tile, thread);
    }
    ptx::commit_copies();
    ptx::wait_copies<1>();
    ptx::sync_block();
    const QueryStage<Tiles> now(stages, stage);

    float scores[1][kScoreTiles][4] = {};
    float dscores[1][kScoreTiles][4] = {};
    multiply_rows<Element, 1, kScoreTiles, kQk>(scores, k_tile, warp_key, now.q, lane);
    multiply_rows<Element, 1, kScoreTiles, kV>(dscores, v_tile, warp_key, now.dout, lane);

#pragma unroll
    for (int n = 0; n < kScoreTiles; ++n) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const QueryNumbers query = now.numbers[8 * n + lane % 4 * 2 + i];
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const bool counts = step.at.kind == TileKind::kFull || query.range.contains(position[h]);
          const float exponent = fmaf(scores[0][n][2 * h + i], in.scale_log2, -query.lse_log2);
          const float weight = counts ? ptx::exp2_fast(exponent) : 0.0F;
          scores[0][n][2 * h + i] = weight;
          dscores[0][n][2 * h + i] = counts ? weight * (dscores[0][n][2 * h + i] - query.delta) : 0.0F;
        }
      }
    }
    std::uint32_t left[1][kScoreTiles / 2][4];
    to_a_fragments<Element, kScoreTiles>(left[0], scores[0]);
    multiply_fragments<Element, 1, kV / 8, kScoreTiles / 2>(dv, left, now.dout, lane);
    to_a_fragments<Element, kScoreTiles>(left[0], dscores[0]);
    multiply_fragments<Element, 1, kQk / 8, kScoreTiles / 2>(dk, left, now.q, lane);

    ptx::sync_block();  // all have read this stage before the next copies go there
    step = next;
    stage = 1 - stage;
  }

#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int key = key_begin + warp_key + 8 * h + lane / 4;
    if (key >= in.k.rows) continue;
    const int column = lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < kQk / 8; ++n) {
      in.dk.store_pair(key, kv_head, 8 * n + column, dk[0][n][2 * h] * in.scale, dk[0][n][2 * h + 1] * in.scale);
    }
#pragma unroll
    for (int n = 0; n < kV / 8; ++n) {
      in.dv.store_pair(key, kv_head, 8 * n + column, dv[0][n][2 * h], dv[0][n][2 * h + 1]);
    }
  }
}

}  // namespace cpfit::kernels::device
