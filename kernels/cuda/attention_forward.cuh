// Attention of one block on tensor cores, forward: out = softmax(scale q k^T) v of this block alone, and its log-sum-exp. After
// FlashAttention 2 (Dao 2023): one thread block owns kRows queries of one head and walks over the tiles of keys they see, keeping
// the running maximum, sum and output of every row in registers; scores never leave the registers either, because the layout of a
// product's result is that of the next one's left operand. Keys and values are fetched one tile ahead.
//
//   q [s_q][h_q][d_qk]   k [s_kv][h_kv][d_qk]   v [s_kv][h_kv][d_v]   out [s_q][h_q][d_v]   lse [s_q][h_q]
//   d_qk <= kQk and d_v <= kV, both multiples of 8: what is missing is zeros in shared memory
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/cuda/attention_arguments.cuh"
#include "kernels/cuda/block_mask.cuh"
#include "kernels/cuda/key_stage.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/shared_tile.cuh"

namespace cpfit::kernels::device {

template <class Element_, int kQk, int kV>
struct ForwardTiles {
  using Element = Element_;
  static constexpr int kWarps = 4;
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kRowTiles = 2;  // of 16 queries, per warp: each fragment of k and v is read once for both
  static constexpr int kRows = 16 * kRowTiles * kWarps;
  static constexpr int kKeys = 64;
  using Q = SharedTile<Element, kRows, kQk>;
  using K = SharedTile<Element, kKeys, kQk>;
  using V = SharedTile<Element, kKeys, kV>;
  static constexpr int kStageBytes = K::kBytes + V::kBytes + kKeys * 4;
  static constexpr int kSharedBytes = Q::kBytes + 2 * kStageBytes;
};

/// Grid: [tiles of queries][h_q].
template <class Element, int kQk, int kV>
__global__ void __launch_bounds__(ForwardTiles<Element, kQk, kV>::kThreads)
    attention_forward_kernel(const ForwardArguments<Element> in) {
  using Tiles = ForwardTiles<Element, kQk, kV>;
  constexpr int kRowTiles = Tiles::kRowTiles;
  constexpr int kScoreTiles = Tiles::kKeys / 8;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const int thread = ptx::thread_x();
  const int lane = thread % 32;
  const int warp_row = thread / 32 * 16 * kRowTiles;
  const int tile_of_rows = ptx::blocks_x() - 1 - ptx::block_x();  // causal: the longest first
  const int row_begin = tile_of_rows * Tiles::kRows;
  const int head = ptx::block_y();
  const HeadRows<Element> q = in.q.head(head);
  const HeadRows<Element> k = in.k.head(head / in.group);
  const HeadRows<Element> v = in.v.head(head / in.group);

  unsigned char* const memory = ptx::dynamic_shared();
  const typename Tiles::Q q_tile{ptx::shared_address(memory)};
  unsigned char* const stages = memory + Tiles::Q::kBytes;

  const RowExtremes rows = in.mask.rows_of(tile_of_rows, Tiles::kRows);
  TileStep step = next_key_tile(in.mask, rows, 0, Tiles::kKeys);
  int stage = 0;
  if (step.kind != TileKind::kEmpty) {
    q_tile.start_copy(q, row_begin, thread, Tiles::kThreads);
    KeyStage<Tiles>(stages, stage).start_copy(k, v, in.mask, step.tile, thread);
  }
  ptx::commit_copies();

  // This thread's rows: row tile m, half h: warp_row + 16 m + 8 h + lane / 4.
  float greatest[kRowTiles][2];  // of the raw scores so far
  float sum[kRowTiles][2];       // of this thread's columns
  float out[kRowTiles][kV / 8][4] = {};
#pragma unroll
  for (int m = 0; m < kRowTiles; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      greatest[m][h] = -kInfinity;
      sum[m][h] = 0;
    }
  }

  while (step.kind != TileKind::kEmpty) {
    const TileStep next = next_key_tile(in.mask, rows, step.tile + 1, Tiles::kKeys);
    if (next.kind != TileKind::kEmpty) KeyStage<Tiles>(stages, 1 - stage).start_copy(k, v, in.mask, next.tile, thread);
    ptx::commit_copies();
    ptx::wait_copies<1>();
    ptx::sync_block();
    const KeyStage<Tiles> now(stages, stage);

    float scores[kRowTiles][kScoreTiles][4] = {};
    multiply_rows<Element, kRowTiles, kScoreTiles, kQk>(scores, q_tile, warp_row, now.k, lane);

    if (step.kind == TileKind::kPartial) {
#pragma unroll
      for (int m = 0; m < kRowTiles; ++m) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const KeyRange range = in.mask.range(row_begin + warp_row + 16 * m + 8 * h + lane / 4);
#pragma unroll
          for (int n = 0; n < kScoreTiles; ++n) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
              if (!range.contains(now.positions[8 * n + lane % 4 * 2 + i])) scores[m][n][2 * h + i] = -kInfinity;
            }
          }
        }
      }
    }

    std::uint32_t weights[kRowTiles][kScoreTiles / 2][4];
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float high = greatest[m][h];
#pragma unroll
        for (int n = 0; n < kScoreTiles; ++n) high = fmaxf(high, fmaxf(scores[m][n][2 * h], scores[m][n][2 * h + 1]));
        high = fmaxf(high, ptx::shuffle_xor(high, 1));
        high = fmaxf(high, ptx::shuffle_xor(high, 2));
        // A row that has seen nothing yet: its weights must come out as exp2(-inf) = 0, not as exp2(-inf + inf).
        const float base = high == -kInfinity ? 0.0F : high * in.scale_log2;
        const float keep = ptx::exp2_fast(greatest[m][h] * in.scale_log2 - base);
        greatest[m][h] = high;
        sum[m][h] *= keep;
#pragma unroll
        for (int n = 0; n < kV / 8; ++n) {
          out[m][n][2 * h] *= keep;
          out[m][n][2 * h + 1] *= keep;
        }
#pragma unroll
        for (int n = 0; n < kScoreTiles; ++n) {
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            const float weight = ptx::exp2_fast(fmaf(scores[m][n][2 * h + i], in.scale_log2, -base));
            scores[m][n][2 * h + i] = weight;
            sum[m][h] += weight;
          }
        }
      }
      to_a_fragments<Element, kScoreTiles>(weights[m], scores[m]);
    }
    multiply_fragments<Element, kRowTiles, kV / 8, kScoreTiles / 2>(out, weights, now.v, lane);

    ptx::sync_block();  // all have read this stage before the next copies go there
    step = next;
    stage = 1 - stage;
  }

#pragma unroll
  for (int m = 0; m < kRowTiles; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float total = sum[m][h];
      total += ptx::shuffle_xor(total, 1);
      total += ptx::shuffle_xor(total, 2);
      const int row = row_begin + warp_row + 16 * m + 8 * h + lane / 4;
      if (row >= in.q.rows) continue;
      const bool nothing = !(total > 0.0F);
      const float inverse = nothing ? 0.0F : 1.0F / total;
      if (lane % 4 == 0) {
        constexpr float kLn2 = 0.693147180559945309F;
        in.lse[std::int64_t{row} * in.heads + head] =
            nothing ? -kInfinity : (greatest[m][h] * in.scale_log2 + log2f(total)) * kLn2;
      }
#pragma unroll
      for (int n = 0; n < kV / 8; ++n) {
        in.out.store_pair(row, head, 8 * n + lane % 4 * 2, out[m][n][2 * h] * inverse, out[m][n][2 * h + 1] * inverse);
      }
    }
  }
}

}  // namespace cpfit::kernels::device
