// Small attention problems that the tests of truth and operators share: every mask, head shape and awkward length.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/core/cut.h"
#include "kernels/core/operators.h"
#include "kernels/reference/fixture_numbers.h"

namespace cpfit::kernels {

struct AttentionProblem {
  std::string name;
  Heads heads;
  Mask mask;
  std::int64_t queries = 0;
  std::int64_t keys = 0;
};

struct ProblemTensors {
  std::vector<double> q, k, v, dout;
};

inline ProblemTensors tensors_of(const AttentionProblem& problem, int fraction_bits = 10) {
  const Heads& heads = problem.heads;
  return {grid_numbers(1, problem.queries * heads.q * heads.qk_dim, fraction_bits),
          grid_numbers(2, problem.keys * heads.kv * heads.qk_dim, fraction_bits),
          grid_numbers(3, problem.keys * heads.kv * heads.v_dim, fraction_bits),
          grid_numbers(4, problem.queries * heads.q * heads.v_dim, fraction_bits)};
}

inline Heads heads_of(std::int32_t q, std::int32_t kv, std::int32_t qk_dim, std::int32_t v_dim) {
  return {q, kv, qk_dim, v_dim, 1 / std::sqrt(static_cast<double>(qk_dim))};
}

/// Documents of these real lengths, each stored in the next multiple of `multiple`.
inline Mask documents_of(const std::vector<std::int64_t>& real, std::int64_t multiple, std::int64_t window = 0) {
  Mask mask{attention::MaskShape::kDocuments, window, {}};
  for (const std::int64_t length : real) mask.documents.push_back({0, length, 0});
  attention::place_documents(mask.documents.data(), static_cast<std::int32_t>(real.size()), multiple);
  return mask;
}
inline std::int64_t tokens_of(const Mask& mask) { return mask.documents.back().start + mask.documents.back().padded; }

/// Errors of a tensor: |a - b| / |b| over all of it, and the largest of |row of a - row of b| / |largest row of b|.
struct TensorError {
  double normwise = 0;
  double worst_row = 0;
};
inline TensorError error_of(const std::vector<double>& computed, const std::vector<double>& truth, std::int64_t row_elements) {
  double error = 0, norm = 0, worst = 0, largest = 0;
  const auto width = static_cast<std::size_t>(row_elements);
  for (std::size_t row = 0; row + width <= truth.size(); row += width) {
    double row_error = 0, row_norm = 0;
    for (std::size_t i = row; i < row + width; ++i) {
      if (computed[i] == truth[i]) continue;  // infinities too
      row_error += (computed[i] - truth[i]) * (computed[i] - truth[i]);
    }
    for (std::size_t i = row; i < row + width; ++i) row_norm += std::isfinite(truth[i]) ? truth[i] * truth[i] : 0;
    error += row_error;
    norm += row_norm;
    worst = std::isnan(row_error) ? row_error : std::max(worst, row_error);
    largest = std::max(largest, row_norm);
  }
  return {std::sqrt(error / std::max(norm, 1e-300)), std::sqrt(worst / std::max(largest, 1e-300))};
}

}  // namespace cpfit::kernels
