// The gradient of the queries of one block on tensor cores: the walk of the forward kernel with two products more.
//   P = exp(scale q k^T - lse)    dS = P * (dout v^T - delta)    dq = scale dS k
// A kernel of its own, and not atomic additions from the kernel of dk and dv: scores and dP are computed twice (7 products
// instead of 5), but every sum has one order, so a result is the same bits on every run, and no fp32 copy of dq is needed.
// Source: cp_model.md E.2. Shapes as in attention_forward.cuh; dq as q, dout as out.
#pragma once

#include <cstdint>

#include "kernels/cuda/attention_arguments.cuh"
#include "kernels/cuda/block_mask.cuh"
#include "kernels/cuda/key_stage.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/shared_tile.cuh"

namespace cpfit::kernels::device {

template <class Element_, int kQk, int kV>
struct DqTiles {
  using Element = Element_;
  static constexpr int kWarps = 4;
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kRowTiles = kQk <= 128 ? 2 : 1;  // what the registers hold: dq and two tiles of scores
  static constexpr int kRows = 16 * kRowTiles * kWarps;
  static constexpr int kKeys = 32;
  using Q = SharedTile<Element, kRows, kQk>;
  using Dout = SharedTile<Element, kRows, kV>;
  using K = SharedTile<Element, kKeys, kQk>;
  using V = SharedTile<Element, kKeys, kV>;
  static constexpr int kStageBytes = K::kBytes + V::kBytes + kKeys * 4;
  static constexpr int kSharedBytes = Q::kBytes + Dout::kBytes + 2 * kStageBytes;
};

/// Grid: [tiles of queries][h_q].
template <class Element, int kQk, int kV>
__global__ void __launch_bounds__(DqTiles<Element, kQk, kV>::kThreads) attention_dq_kernel(const BackwardArguments<Element> in) {
  using Tiles = DqTiles<Element, kQk, kV>;
  constexpr int kRowTiles = Tiles::kRowTiles;
  constexpr int kScoreTiles = Tiles::kKeys / 8;
  const int thread = ptx::thread_x();
  const int lane = thread % 32;
  const int warp_row = thread / 32 * 16 * kRowTiles;
  const int tile_of_rows = ptx::blocks_x() - 1 - ptx::block_x();  // causal: the longest first
  const int row_begin = tile_of_rows * Tiles::kRows;
  const int head = ptx::block_y();
  const HeadRows<Element> k = in.k.head(head / in.group);
  const HeadRows<Element> v = in.v.head(head / in.group);

  unsigned char* const memory = ptx::dynamic_shared();
  const typename Tiles::Q q_tile{ptx::shared_address(memory)};
  const typename Tiles::Dout dout_tile{ptx::shared_address(memory + Tiles::Q::kBytes)};
  unsigned char* const stages = memory + Tiles::Q::kBytes + Tiles::Dout::kBytes;

  const RowExtremes rows = in.mask.rows_of(tile_of_rows, Tiles::kRows);
  TileStep step = next_key_tile(in.mask, rows, 0, Tiles::kKeys);
  int stage = 0;
  if (step.kind != TileKind::kEmpty) {
    q_tile.start_copy(in.q.head(head), row_begin, thread, Tiles::kThreads);
    dout_tile.start_copy(in.dout.head(head), row_begin, thread, Tiles::kThreads);
    KeyStage<Tiles>(stages, stage).start_copy(k, v, in.mask, step.tile, thread);
  }
  ptx::commit_copies();

  // This thread's rows: row tile m, half h: warp_row + 16 m + 8 h + lane / 4.
  float lse_log2[kRowTiles][2];
  float delta[kRowTiles][2];
  float dq[kRowTiles][kQk / 8][4] = {};
#pragma unroll
  for (int m = 0; m < kRowTiles; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = row_begin + warp_row + 16 * m + 8 * h + lane / 4;
      const bool exists = row < in.q.rows;
      const std::int64_t place = std::int64_t{row} * in.heads + head;
      lse_log2[m][h] = log2_sum(exists ? in.lse[place] : INFINITY);
      delta[m][h] = exists ? in.delta[place] : 0.0F;
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
    float dscores[kRowTiles][kScoreTiles][4] = {};
    multiply_rows<Element, kRowTiles, kScoreTiles, kQk>(scores, q_tile, warp_row, now.k, lane);
    multiply_rows<Element, kRowTiles, kScoreTiles, kV>(dscores, dout_tile, warp_row, now.v, lane);

#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
#pragma unroll
        for (int n = 0; n < kScoreTiles; ++n) {
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            const float weight = ptx::exp2_fast(fmaf(scores[m][n][2 * h + i], in.scale_log2, -lse_log2[m][h]));
            dscores[m][n][2 * h + i] = weight * (dscores[m][n][2 * h + i] - delta[m][h]);
          }
        }
        if (step.kind == TileKind::kFull) continue;
        const KeyRange range = in.mask.range(row_begin + warp_row + 16 * m + 8 * h + lane / 4);
#pragma unroll
        for (int n = 0; n < kScoreTiles; ++n) {
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            if (!range.contains(now.positions[8 * n + lane % 4 * 2 + i])) dscores[m][n][2 * h + i] = 0;
          }
        }
      }
    }
    std::uint32_t left[kRowTiles][kScoreTiles / 2][4];
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) to_a_fragments<Element, kScoreTiles>(left[m], dscores[m]);
    multiply_fragments<Element, kRowTiles, kQk / 8, kScoreTiles / 2>(dq, left, now.k, lane);

    ptx::sync_block();  // all have read this stage before the next copies go there
    step = next;
    stage = 1 - stage;
  }

#pragma unroll
  for (int m = 0; m < kRowTiles; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = row_begin + warp_row + 16 * m + 8 * h + lane / 4;
      if (row >= in.q.rows) continue;
#pragma unroll
      for (int n = 0; n < kQk / 8; ++n) {
        in.dq.store_pair(row, head, 8 * n + lane % 4 * 2, dq[m][n][2 * h] * in.scale, dq[m][n][2 * h + 1] * in.scale);
      }
    }
  }
}

}  // namespace cpfit::kernels::device
