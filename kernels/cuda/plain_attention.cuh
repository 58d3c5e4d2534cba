// Attention of one block without tensor cores: for fp32 and fp64, and for head sizes that the tensor core kernels do not take.
// Fused multiply-adds on tiles of kTile queries and kTile keys in shared memory, any head size that fits there. Three kernels, as
// with tensor cores: forward, dq, and dk with dv. Element is the inputs' type, Real what is computed in and what lse and delta
// are. Source of the formulas: cp_model.md E.1-E.3. Shapes as in operators.h.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/cuda/block_mask.cuh"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/ptx.cuh"

namespace cpfit::kernels::device {

template <class Element, class Real>
struct PlainArguments {
  DeviceMask mask;
  const Element* q = nullptr;
  const Element* k = nullptr;
  const Element* v = nullptr;
  const Element* dout = nullptr;
  void* out = nullptr;  // Real when wide, else Element; and so dq, dk, dv
  void* dq = nullptr;
  void* dk = nullptr;
  void* dv = nullptr;
  bool wide_out = false;
  bool wide_dq = false;
  bool wide_dk = false;
  bool wide_dv = false;
  Real* lse = nullptr;
  const Real* final_lse = nullptr;
  const Real* delta = nullptr;
  int heads = 0;  // h_q
  int group = 1;  // h_q / h_kv
  int qk_dim = 0;
  int v_dim = 0;
  Real scale = 0;
};

/// Four threads share a row of the tile: thread 4 r + c has row r, and columns c, c + 4, ...
template <int kTile>
inline constexpr int kPlainThreads = 4 * kTile;

/// kTile rows of one head in shared memory; a row is one longer than the head, so that rows start in different banks.
template <class Real>
struct PlainTile {
  Real* memory;
  int columns;
  __device__ Real& at(int row, int column) const { return memory[row * (columns + 1) + column]; }
};

/// Hands out shared memory.
template <class Real, int kTile>
struct PlainShared {
  unsigned char* next = ptx::dynamic_shared();

  __device__ PlainTile<Real> tile(int columns) {
    const PlainTile<Real> made{reinterpret_cast<Real*>(next), columns};
    next += kTile * (columns + 1) * sizeof(Real);
    return made;
  }
  __device__ int* positions() {
    int* const made = reinterpret_cast<int*>(next);
    next += kTile * sizeof(int);
    return made;
  }
};
/// Bytes that the kernels take: every one has two tiles of d_qk and of d_v to read, the sums of its own, tiles of scores.
template <class Real, int kTile>
constexpr int plain_forward_bytes(int qk_dim, int v_dim) {
  return kTile * static_cast<int>((2 * (qk_dim + 1) + 2 * (v_dim + 1) + kTile + 1) * sizeof(Real) + sizeof(int));
}
template <class Real, int kTile>
constexpr int plain_backward_bytes(int qk_dim, int v_dim) {
  return kTile * static_cast<int>((3 * (qk_dim + 1) + 3 * (v_dim + 1) + 2 * (kTile + 1)) * sizeof(Real) + sizeof(int));
}

/// Rows [begin, begin + kTile) of one head of [rows][heads][columns]; zeros past the last row.
template <int kTile, class Real, class Element>
__device__ void load_rows(const PlainTile<Real>& to, const Element* from, int rows, int heads, int head, int begin) {
  for (int i = ptx::thread_x(); i < kTile * to.columns; i += kPlainThreads<kTile>) {
    const int row = i / to.columns;
    const int column = i % to.columns;
    const std::int64_t place = (std::int64_t{begin + row} * heads + head) * to.columns + column;
    to.at(row, column) = begin + row < rows ? to_real<Real>(from[place]) : Real(0);
  }
}
template <int kTile, class Real>
__device__ void clear_rows(const PlainTile<Real>& to) {
  for (int i = ptx::thread_x(); i < kTile * (to.columns + 1); i += kPlainThreads<kTile>) to.memory[i] = Real(0);
}
/// factor(row) * tile, rounded once, to rows [begin, ...) that exist.
template <int kTile, class Element, class Real>
__device__ void store_row(const PlainTile<Real>& from, int row, Real factor, void* to, bool wide, int rows, int heads, int head,
                          int begin) {
  if (begin + row >= rows) return;
  for (int column = ptx::thread_x() % 4; column < from.columns; column += 4) {
    const std::int64_t place = (std::int64_t{begin + row} * heads + head) * from.columns + column;
    const Real value = from.at(row, column) * factor;
    if (wide) {
      static_cast<Real*>(to)[place] = value;
    } else {
      static_cast<Element*>(to)[place] = from_real<Element>(value);
    }
  }
}
template <class Real>
__device__ Real dot_rows(const PlainTile<Real>& a, int a_row, const PlainTile<Real>& b, int b_row) {
  Real sum = 0;
  for (int i = 0; i < a.columns; ++i) sum = std::fma(a.at(a_row, i), b.at(b_row, i), sum);
  return sum;
}
/// sums(row, :) += sum over i of weights(row, i) * from(i, :), this thread's columns.
template <int kTile, class Real>
__device__ void add_weighted_rows(const PlainTile<Real>& sums, int row, const PlainTile<Real>& weights,
                                  const PlainTile<Real>& from) {
  for (int column = ptx::thread_x() % 4; column < sums.columns; column += 4) {
    Real sum = sums.at(row, column);
    for (int i = 0; i < kTile; ++i) sum = std::fma(weights.at(row, i), from.at(i, column), sum);
    sums.at(row, column) = sum;
  }
}

/// Grid: [tiles of queries][h_q].
template <class Element, class Real, int kTile>
__global__ void __launch_bounds__(kPlainThreads<kTile>) plain_forward_kernel(const PlainArguments<Element, Real> in) {
  constexpr Real kInfinity = std::numeric_limits<Real>::infinity();
  const int row = ptx::thread_x() / 4;
  const int begin = ptx::block_x() * kTile;
  const int head = ptx::block_y();
  const int kv_heads = in.heads / in.group;
  PlainShared<Real, kTile> shared;
  const PlainTile<Real> q = shared.tile(in.qk_dim);
  const PlainTile<Real> k = shared.tile(in.qk_dim);
  const PlainTile<Real> v = shared.tile(in.v_dim);
  const PlainTile<Real> out = shared.tile(in.v_dim);
  const PlainTile<Real> weights = shared.tile(kTile);
  int* const positions = shared.positions();

  load_rows<kTile>(q, in.q, in.mask.queries, in.heads, head, begin);
  clear_rows<kTile>(out);
  const KeyRange range = in.mask.range(begin + row);
  const RowExtremes rows = in.mask.rows_of(ptx::block_x(), kTile);
  Real greatest = -kInfinity;
  Real total = 0;
  for (TileStep step = next_key_tile(in.mask, rows, 0, kTile); step.kind != TileKind::kEmpty;
       step = next_key_tile(in.mask, rows, step.tile + 1, kTile)) {
    const int key_begin = step.tile * kTile;
    ptx::sync_block();  // all have read the last tile
    load_rows<kTile>(k, in.k, in.mask.keys, kv_heads, head / in.group, key_begin);
    load_rows<kTile>(v, in.v, in.mask.keys, kv_heads, head / in.group, key_begin);
    if (ptx::thread_x() < kTile) positions[ptx::thread_x()] = in.mask.position(key_begin + ptx::thread_x());
    ptx::sync_block();

    Real high = greatest;
    for (int key = ptx::thread_x() % 4; key < kTile; key += 4) {
      const Real score = range.contains(positions[key]) ? in.scale * dot_rows(q, row, k, key) : -kInfinity;
      weights.at(row, key) = score;
      high = score > high ? score : high;
    }
    for (int step_of_lanes = 1; step_of_lanes < 4; step_of_lanes *= 2) {
      const Real other = ptx::shuffle_xor(high, step_of_lanes);
      high = other > high ? other : high;
    }
    // A row that has seen nothing yet: its weights must come out as exp(-inf) = 0, not as exp(-inf + inf).
    const Real base = high == -kInfinity ? Real(0) : high;
    const Real keep = std::exp(greatest - base);
    Real sum = 0;
    for (int key = ptx::thread_x() % 4; key < kTile; key += 4) {
      const Real weight = std::exp(weights.at(row, key) - base);
      weights.at(row, key) = weight;
      sum += weight;
    }
    sum += ptx::shuffle_xor(sum, 1);
    sum += ptx::shuffle_xor(sum, 2);
    total = total * keep + sum;
    greatest = high;
    for (int column = ptx::thread_x() % 4; column < in.v_dim; column += 4) out.at(row, column) *= keep;
    ptx::sync_warp();  // a row's weights are written and read by four lanes of one warp
    add_weighted_rows<kTile>(out, row, weights, v);
  }
  ptx::sync_block();  // where there was no tile, others have cleared this row
  if (begin + row >= in.mask.queries) return;
  const bool nothing = !(total > Real(0));
  if (ptx::thread_x() % 4 == 0) {
    in.lse[std::int64_t{begin + row} * in.heads + head] = nothing ? -kInfinity : greatest + std::log(total);
  }
  store_row<kTile, Element>(out, row, nothing ? Real(0) : Real(1) / total, in.out, in.wide_out, in.mask.queries, in.heads, head,
                            begin);
}

/// The weight of a score in the final result, and 0 where the row attended to nothing.
template <class Real>
__device__ Real final_weight(Real score, Real lse) {
  return lse - lse == Real(0) ? std::exp(score - lse) : Real(0);
}

/// Grid: [tiles of queries][h_q].
template <class Element, class Real, int kTile>
__global__ void __launch_bounds__(kPlainThreads<kTile>) plain_dq_kernel(const PlainArguments<Element, Real> in) {
  const int row = ptx::thread_x() / 4;
  const int begin = ptx::block_x() * kTile;
  const int head = ptx::block_y();
  const int kv_heads = in.heads / in.group;
  PlainShared<Real, kTile> shared;
  const PlainTile<Real> q = shared.tile(in.qk_dim);
  const PlainTile<Real> k = shared.tile(in.qk_dim);
  const PlainTile<Real> dq = shared.tile(in.qk_dim);
  const PlainTile<Real> v = shared.tile(in.v_dim);
  const PlainTile<Real> dout = shared.tile(in.v_dim);
  const PlainTile<Real> dscores = shared.tile(kTile);
  int* const positions = shared.positions();

  load_rows<kTile>(q, in.q, in.mask.queries, in.heads, head, begin);
  load_rows<kTile>(dout, in.dout, in.mask.queries, in.heads, head, begin);
  clear_rows<kTile>(dq);
  const bool exists = begin + row < in.mask.queries;
  const std::int64_t place = std::int64_t{begin + row} * in.heads + head;
  const Real lse = exists ? in.final_lse[place] : Real(0);
  const Real delta = exists ? in.delta[place] : Real(0);
  const KeyRange range = in.mask.range(begin + row);
  const RowExtremes rows = in.mask.rows_of(ptx::block_x(), kTile);
  for (TileStep step = next_key_tile(in.mask, rows, 0, kTile); step.kind != TileKind::kEmpty;
       step = next_key_tile(in.mask, rows, step.tile + 1, kTile)) {
    const int key_begin = step.tile * kTile;
    ptx::sync_block();  // all have read the last tile
    load_rows<kTile>(k, in.k, in.mask.keys, kv_heads, head / in.group, key_begin);
    load_rows<kTile>(v, in.v, in.mask.keys, kv_heads, head / in.group, key_begin);
    if (ptx::thread_x() < kTile) positions[ptx::thread_x()] = in.mask.position(key_begin + ptx::thread_x());
    ptx::sync_block();
    for (int key = ptx::thread_x() % 4; key < kTile; key += 4) {
      Real dscore = 0;
      if (range.contains(positions[key])) {
        dscore = final_weight(in.scale * dot_rows(q, row, k, key), lse) * (dot_rows(dout, row, v, key) - delta);
      }
      dscores.at(row, key) = dscore;
    }
    ptx::sync_warp();  // a row is written and read by four lanes of one warp
    add_weighted_rows<kTile>(dq, row, dscores, k);
  }
  ptx::sync_block();  // where there was no tile, others have cleared this row
  store_row<kTile, Element>(dq, row, in.scale, in.dq, in.wide_dq, in.mask.queries, in.heads, head, begin);
}

/// Grid: [tiles of keys][h_kv].
template <class Element, class Real, int kTile>
__global__ void __launch_bounds__(kPlainThreads<kTile>) plain_dkdv_kernel(const PlainArguments<Element, Real> in) {
  const int row = ptx::thread_x() / 4;  // of keys
  const int begin = ptx::block_x() * kTile;
  const int kv_head = ptx::block_y();
  const int kv_heads = in.heads / in.group;
  PlainShared<Real, kTile> shared;
  const PlainTile<Real> k = shared.tile(in.qk_dim);
  const PlainTile<Real> q = shared.tile(in.qk_dim);
  const PlainTile<Real> dk = shared.tile(in.qk_dim);
  const PlainTile<Real> v = shared.tile(in.v_dim);
  const PlainTile<Real> dout = shared.tile(in.v_dim);
  const PlainTile<Real> dv = shared.tile(in.v_dim);
  const PlainTile<Real> weights = shared.tile(kTile);
  const PlainTile<Real> dscores = shared.tile(kTile);

  load_rows<kTile>(k, in.k, in.mask.keys, kv_heads, kv_head, begin);
  load_rows<kTile>(v, in.v, in.mask.keys, kv_heads, kv_head, begin);
  clear_rows<kTile>(dk);
  clear_rows<kTile>(dv);
  const int position = in.mask.position(begin + row);
  const KeyExtremes keys = in.mask.keys_of(ptx::block_x(), kTile);
  for (int head = kv_head * in.group; head < (kv_head + 1) * in.group; ++head) {
    for (TileStep step = next_query_tile(in.mask, keys, 0, kTile); step.kind != TileKind::kEmpty;
         step = next_query_tile(in.mask, keys, step.tile + 1, kTile)) {
      const int query_begin = step.tile * kTile;
      ptx::sync_block();  // all have read the last tile
      load_rows<kTile>(q, in.q, in.mask.queries, in.heads, head, query_begin);
      load_rows<kTile>(dout, in.dout, in.mask.queries, in.heads, head, query_begin);
      ptx::sync_block();
      for (int i = ptx::thread_x() % 4; i < kTile; i += 4) {
        const int query = query_begin + i;
        Real weight = 0;
        Real dscore = 0;
        if (query < in.mask.queries && in.mask.range(query).contains(position)) {
          const std::int64_t place = std::int64_t{query} * in.heads + head;
          weight = final_weight(in.scale * dot_rows(k, row, q, i), in.final_lse[place]);
          dscore = weight * (dot_rows(v, row, dout, i) - in.delta[place]);
        }
        weights.at(row, i) = weight;
        dscores.at(row, i) = dscore;
      }
      ptx::sync_warp();  // a row is written and read by four lanes of one warp
      add_weighted_rows<kTile>(dv, row, weights, dout);
      add_weighted_rows<kTile>(dk, row, dscores, q);
    }
  }
  ptx::sync_block();  // where there was no tile, others have cleared this row
  store_row<kTile, Element>(dk, row, in.scale, in.dk, in.wide_dk, in.mask.keys, kv_heads, kv_head, begin);
  store_row<kTile, Element>(dv, row, Real(1), in.dv, in.wide_dv, in.mask.keys, kv_heads, kv_head, begin);
}

}  // namespace cpfit::kernels::device
