#include "kernels/reference/truth.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "kernels/core/require.h"

namespace cpfit::kernels {

namespace {

double dot(const double* a, const double* b, std::int32_t dim) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int32_t d = 0; d < dim; ++d) sum += a[d] * b[d];
  return sum;
}

/// to += factor * from.
void add_scaled(double factor, const double* from, double* to, std::int32_t dim) {
  for (std::int32_t d = 0; d < dim; ++d) to[d] += factor * from[d];
}

/// Sizes of a problem and where a head's row begins.
struct TruthShape {
  const Heads& heads;
  std::int64_t queries;
  std::int64_t keys;

  TruthShape(const Heads& h, std::span<const double> q, std::span<const double> k, std::span<const double> v)
      : heads(h),
        queries(static_cast<std::int64_t>(q.size()) / h.q_columns()),
        keys(static_cast<std::int64_t>(k.size()) / h.k_columns()) {
    require(h.q % h.kv == 0, "truth: {} query heads over {} key heads", h.q, h.kv);
    require(static_cast<std::int64_t>(q.size()) == queries * h.q_columns() &&
                static_cast<std::int64_t>(k.size()) == keys * h.k_columns() &&
                static_cast<std::int64_t>(v.size()) == keys * h.v_columns(),
            "truth: sizes {}, {}, {} of q, k, v do not fit {}, {} heads of {}, {}", q.size(), k.size(), v.size(), h.q, h.kv,
            h.qk_dim, h.v_dim);
  }
  [[nodiscard]] std::int64_t q_at(std::int64_t row, std::int32_t head) const { return (row * heads.q + head) * heads.qk_dim; }
  [[nodiscard]] std::int64_t out_at(std::int64_t row, std::int32_t head) const { return (row * heads.q + head) * heads.v_dim; }
  /// Of the key head that a query head reads.
  [[nodiscard]] std::int64_t k_at(std::int64_t row, std::int32_t head) const {
    return (row * heads.kv + head / (heads.q / heads.kv)) * heads.qk_dim;
  }
  [[nodiscard]] std::int64_t v_at(std::int64_t row, std::int32_t head) const {
    return (row * heads.kv + head / (heads.q / heads.kv)) * heads.v_dim;
  }
};

/// The keys that one query sees.
std::vector<std::int64_t> keys_seen(const attention::MaskView& mask, const TruthShape& shape, std::int64_t row) {
  std::vector<std::int64_t> seen;
  for (std::int64_t key = 0; key < shape.keys; ++key) {
    if (attention::attends(mask, row + shape.keys - shape.queries, key)) seen.push_back(key);
  }
  return seen;
}

/// softmax(scale * q k^T) over the keys seen.
struct TrueRow {
  std::vector<double> weight;
  double lse = -std::numeric_limits<double>::infinity();
};

TrueRow softmax_of(const TruthShape& shape, std::span<const double> q, std::span<const double> k, std::int64_t row,
                   std::int32_t head, const std::vector<std::int64_t>& seen) {
  TrueRow result;
  if (seen.empty()) return result;
  for (const std::int64_t key : seen) {
    result.weight.push_back(shape.heads.scale *
                            dot(q.data() + shape.q_at(row, head), k.data() + shape.k_at(key, head), shape.heads.qk_dim));
  }
  const double highest = std::ranges::max(result.weight);
  double sum = 0;
  for (const double score : result.weight) sum += std::exp(score - highest);
  result.lse = highest + std::log(sum);
  for (double& score : result.weight) score = std::exp(score - highest) / sum;
  return result;
}

}  // namespace

TrueAttention true_attention(const Heads& heads, const attention::MaskView& mask, std::span<const double> q,
                             std::span<const double> k, std::span<const double> v) {
  const TruthShape shape(heads, q, k, v);
  TrueAttention result;
  result.out.resize(static_cast<std::size_t>(shape.queries * heads.out_columns()));
  for (std::int64_t row = 0; row < shape.queries; ++row) {
    const std::vector<std::int64_t> seen = keys_seen(mask, shape, row);
    for (std::int32_t head = 0; head < heads.q; ++head) {
      const TrueRow softmax = softmax_of(shape, q, k, row, head, seen);
      result.lse.push_back(softmax.lse);
      for (std::size_t i = 0; i < seen.size(); ++i) {
        add_scaled(softmax.weight[i], v.data() + shape.v_at(seen[i], head), result.out.data() + shape.out_at(row, head),
                   heads.v_dim);
      }
    }
  }
  return result;
}

TrueGradients true_gradients(const Heads& heads, const attention::MaskView& mask, std::span<const double> q,
                             std::span<const double> k, std::span<const double> v, std::span<const double> dout) {
  const TruthShape shape(heads, q, k, v);
  require(static_cast<std::int64_t>(dout.size()) == shape.queries * heads.out_columns(), "truth: {} numbers in dout",
          dout.size());
  TrueGradients gradients{std::vector<double>(q.size()), std::vector<double>(k.size()), std::vector<double>(v.size())};
  for (std::int64_t row = 0; row < shape.queries; ++row) {
    const std::vector<std::int64_t> seen = keys_seen(mask, shape, row);
    for (std::int32_t head = 0; head < heads.q; ++head) {
      const TrueRow softmax = softmax_of(shape, q, k, row, head, seen);
      const double* d_out = dout.data() + shape.out_at(row, head);
      // out = sum_i weight_i v_i, so d weight_i = dout . v_i; softmax: d score_i = weight_i (d weight_i - sum_j weight_j d
      // weight_j).
      std::vector<double> d_weight;
      double mean = 0;
      for (std::size_t i = 0; i < seen.size(); ++i) {
        d_weight.push_back(dot(d_out, v.data() + shape.v_at(seen[i], head), heads.v_dim));
        mean += softmax.weight[i] * d_weight[i];
      }
      for (std::size_t i = 0; i < seen.size(); ++i) {
        const double d_score = heads.scale * softmax.weight[i] * (d_weight[i] - mean);
        const std::int64_t key = shape.k_at(seen[i], head);
        add_scaled(d_score, k.data() + key, gradients.dq.data() + shape.q_at(row, head), heads.qk_dim);
        add_scaled(d_score, q.data() + shape.q_at(row, head), gradients.dk.data() + key, heads.qk_dim);
        add_scaled(softmax.weight[i], d_out, gradients.dv.data() + shape.v_at(seen[i], head), heads.v_dim);
      }
    }
  }
  return gradients;
}

}  // namespace cpfit::kernels
