#include "kernels/reference/block_attention.h"

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/reference/score_rows.h"
#include "kernels/reference/score_tiles.h"
#include "model/attention/merge.h"

namespace cpfit::kernels {

namespace {

// A tile of scores and the rows that meet in it stay in the second-level cache.
constexpr std::int64_t kQueryTile = 128;
constexpr std::int64_t kKeyTile = 256;

/// A matrix inside a wider one: `stride` elements from row to row.
template <class Real>
struct Matrix {
  Real* data;
  std::int64_t stride;
  Matrix rows_from(std::int64_t row) const { return {data + row * stride, stride}; }
};

/// c = alpha * a b + beta * c; a is m x k and b k x n after transposition.
void multiply(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
              Matrix<const float> a, Matrix<const float> b, float beta, Matrix<float> c) {
  cblas_sgemm(CblasRowMajor, transpose_a ? CblasTrans : CblasNoTrans, transpose_b ? CblasTrans : CblasNoTrans,
              static_cast<blasint>(m), static_cast<blasint>(n), static_cast<blasint>(k), alpha, a.data,
              static_cast<blasint>(a.stride), b.data, static_cast<blasint>(b.stride), beta, c.data,
              static_cast<blasint>(c.stride));
}
void multiply(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, double alpha,
              Matrix<const double> a, Matrix<const double> b, double beta, Matrix<double> c) {
  cblas_dgemm(CblasRowMajor, transpose_a ? CblasTrans : CblasNoTrans, transpose_b ? CblasTrans : CblasNoTrans,
              static_cast<blasint>(m), static_cast<blasint>(n), static_cast<blasint>(k), alpha, a.data,
              static_cast<blasint>(a.stride), b.data, static_cast<blasint>(b.stride), beta, c.data,
              static_cast<blasint>(c.stride));
}

/// Columns of one head in a tensor of `heads` heads.
template <class Real>
Matrix<Real> head_of(Real* tensor, std::int32_t heads, std::int32_t head, std::int32_t dim) {
  return {tensor + std::int64_t{head} * dim, std::int64_t{heads} * dim};
}

/// scale * q k^T of a tile, hidden keys at -inf.
template <class Real>
void score_tile(const ScoreTiles& tiles, const ScoreTile& tile, TileSpan queries, const Heads& heads, Matrix<const Real> q,
                Matrix<const Real> k, Real* scores) {
  multiply(false, true, queries.count, tile.keys.count, heads.qk_dim, static_cast<Real>(heads.scale), q.rows_from(queries.begin),
           k.rows_from(tile.keys.begin), Real(0), Matrix<Real>{scores, kKeyTile});
  if (!tile.is_mixed) return;
  for (std::int64_t i = 0; i < queries.count; ++i) {
    hide_keys(scores + i * kKeyTile, tiles.positions(tile.keys.begin), tile.keys.count, tiles.visible(queries.begin + i));
  }
}

/// Running softmax of the rows of a query tile.
template <class Real>
struct RunningRows {
  Real highest[kQueryTile];
  Real sum[kQueryTile];
};

/// Scores become unnormalised probabilities; what was summed before is scaled to the new maximum.
template <class Real>
void take_tile(RunningRows<Real>& rows, std::int64_t queries, std::int64_t keys, Number rounding, Real* scores, Real* out,
               std::int64_t v_dim) {
  constexpr Real kNothing = -std::numeric_limits<Real>::infinity();
  for (std::int64_t i = 0; i < queries; ++i) {
    Real* row = scores + i * kKeyTile;
    const Real highest = std::max(rows.highest[i], largest(row, keys));
    if (highest == kNothing) {
      std::fill_n(row, keys, Real(0));
      continue;
    }
    const Real scale = std::exp(rows.highest[i] - highest);
    rows.sum[i] = rows.sum[i] * scale + exp_scores(row, keys, highest, rounding);
    rows.highest[i] = highest;
    if (scale == Real(1)) continue;
    for (std::int64_t d = 0; d < v_dim; ++d) out[i * v_dim + d] *= scale;
  }
}

template <class Real>
void attend_head(const WideBlock<Real>& block, const ScoreTiles& tiles, std::int32_t head, std::vector<Real>& scores,
                 std::vector<Real>& sums, Real* out, Real* lse) {
  const Heads& heads = block.heads;
  const std::int32_t kv_head = head / (heads.q / heads.kv);
  const auto q = head_of(block.q, heads.q, head, heads.qk_dim);
  const auto k = head_of(block.k, heads.kv, kv_head, heads.qk_dim);
  const auto v = head_of(block.v, heads.kv, kv_head, heads.v_dim);
  const auto o = head_of(out, heads.q, head, heads.v_dim);
  for (std::int64_t i = 0; i < tiles.query_tiles(); ++i) {
    const TileSpan queries = tiles.query_tile(i);
    RunningRows<Real> rows;
    std::fill_n(rows.highest, kQueryTile, -std::numeric_limits<Real>::infinity());
    std::fill_n(rows.sum, kQueryTile, Real(0));
    std::fill(sums.begin(), sums.end(), Real(0));
    for (std::int64_t j = 0; j < tiles.key_tiles(); ++j) {
      const ScoreTile tile = tiles.tile(i, j);
      const TileSpan keys = tile.keys;
      if (keys.count == 0) continue;
      score_tile<Real>(tiles, tile, queries, heads, q, k, scores.data());
      take_tile(rows, queries.count, keys.count, block.rounding, scores.data(), sums.data(), heads.v_dim);
      multiply(false, false, queries.count, heads.v_dim, keys.count, Real(1), Matrix<const Real>{scores.data(), kKeyTile},
               v.rows_from(keys.begin), Real(1), Matrix<Real>{sums.data(), heads.v_dim});
      if (block.between_tiles != nullptr) (*block.between_tiles)();
    }
    for (std::int64_t row = 0; row < queries.count; ++row) {
      const bool blind = rows.highest[row] == -std::numeric_limits<Real>::infinity();
      const Real weight = blind ? Real(0) : 1 / rows.sum[row];
      Real* to = o.rows_from(queries.begin + row).data;
      for (std::int32_t d = 0; d < heads.v_dim; ++d) to[d] = attention::weighted(weight, sums[row * heads.v_dim + d]);
      lse[(queries.begin + row) * heads.q + head] = blind ? rows.highest[row] : rows.highest[row] + std::log(rows.sum[row]);
    }
  }
}

template <class Real>
void differentiate_head(const WideBlock<Real>& block, const ScoreTiles& tiles, std::int32_t head, const Real* dout,
                        const Real* lse, const Real* delta, std::vector<Real>& p, std::vector<Real>& ds, Real* dq, Real* dk,
                        Real* dv) {
  const Heads& heads = block.heads;
  const std::int32_t kv_head = head / (heads.q / heads.kv);
  const auto q = head_of(block.q, heads.q, head, heads.qk_dim);
  const auto k = head_of(block.k, heads.kv, kv_head, heads.qk_dim);
  const auto v = head_of(block.v, heads.kv, kv_head, heads.v_dim);
  const auto d_out = head_of(dout, heads.q, head, heads.v_dim);
  const auto d_q = head_of(dq, heads.q, head, heads.qk_dim);
  const auto d_k = head_of(dk, heads.kv, kv_head, heads.qk_dim);
  const auto d_v = head_of(dv, heads.kv, kv_head, heads.v_dim);
  const auto scale = static_cast<Real>(heads.scale);
  const Matrix<const Real> p_tile{p.data(), kKeyTile};
  const Matrix<const Real> ds_tile{ds.data(), kKeyTile};
  for (std::int64_t i = 0; i < tiles.query_tiles(); ++i) {
    const TileSpan queries = tiles.query_tile(i);
    const auto rows = d_out.rows_from(queries.begin);
    for (std::int64_t j = 0; j < tiles.key_tiles(); ++j) {
      const ScoreTile tile = tiles.tile(i, j);
      const TileSpan keys = tile.keys;
      if (keys.count == 0) continue;
      score_tile<Real>(tiles, tile, queries, heads, q, k, p.data());
      multiply(false, true, queries.count, keys.count, heads.v_dim, Real(1), rows, v.rows_from(keys.begin), Real(0),
               Matrix<Real>{ds.data(), kKeyTile});
      for (std::int64_t row = 0; row < queries.count; ++row) {
        const std::int64_t at = (queries.begin + row) * heads.q + head;
        if (attention::attended_to_something(lse[at])) {
          differentiate_scores(p.data() + row * kKeyTile, ds.data() + row * kKeyTile, keys.count, lse[at], delta[at],
                               block.rounding);
        } else {
          std::fill_n(p.data() + row * kKeyTile, keys.count, Real(0));
          std::fill_n(ds.data() + row * kKeyTile, keys.count, Real(0));
        }
      }
      multiply(true, false, keys.count, heads.v_dim, queries.count, Real(1), p_tile, rows, Real(1), d_v.rows_from(keys.begin));
      multiply(false, false, queries.count, heads.qk_dim, keys.count, scale, ds_tile, k.rows_from(keys.begin), Real(1),
               d_q.rows_from(queries.begin));
      multiply(true, false, keys.count, heads.qk_dim, queries.count, scale, ds_tile, q.rows_from(queries.begin), Real(1),
               d_k.rows_from(keys.begin));
      if (block.between_tiles != nullptr) (*block.between_tiles)();
    }
  }
}

}  // namespace

template <class Real>
void attend_block(const WideBlock<Real>& block, Real* out, Real* lse) {
  const ScoreTiles tiles(block.mask, block.queries, block.keys, kQueryTile, kKeyTile);
  std::vector<Real> scores(static_cast<std::size_t>(kQueryTile * kKeyTile));
  std::vector<Real> sums(static_cast<std::size_t>(kQueryTile * block.heads.v_dim));
  for (std::int32_t head = 0; head < block.heads.q; ++head) attend_head(block, tiles, head, scores, sums, out, lse);
}

template <class Real>
void differentiate_block(const WideBlock<Real>& block, const Real* dout, const Real* lse, const Real* delta, Real* dq, Real* dk,
                         Real* dv) {
  const Heads& heads = block.heads;
  std::fill_n(dq, block.queries * heads.q_columns(), Real(0));
  std::fill_n(dk, block.keys * heads.k_columns(), Real(0));
  std::fill_n(dv, block.keys * heads.v_columns(), Real(0));
  const ScoreTiles tiles(block.mask, block.queries, block.keys, kQueryTile, kKeyTile);
  std::vector<Real> p(static_cast<std::size_t>(kQueryTile * kKeyTile));
  std::vector<Real> ds(p.size());
  for (std::int32_t head = 0; head < heads.q; ++head) {
    differentiate_head(block, tiles, head, dout, lse, delta, p, ds, dq, dk, dv);
  }
}

template void attend_block(const WideBlock<float>&, float*, float*);
template void attend_block(const WideBlock<double>&, double*, double*);
template void differentiate_block(const WideBlock<float>&, const float*, const float*, const float*, float*, float*, float*);
template void differentiate_block(const WideBlock<double>&, const double*, const double*, const double*, double*, double*,
                                  double*);

void use_one_blas_thread() { openblas_set_num_threads(1); }

}  // namespace cpfit::kernels
