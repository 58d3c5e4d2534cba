// The few layers of a transformer block in fp64, forward and by hand backward: what lies around attention in the block of the
// suite (block.h). Small and plain on purpose; speed does not matter here. Rows are tokens.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cpfit::kernels {

struct DenseMatrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<double> values;  // row by row

  DenseMatrix() = default;
  DenseMatrix(std::int64_t row_count, std::int64_t column_count)
      : rows(row_count), columns(column_count), values(static_cast<std::size_t>(row_count * column_count)) {}
  [[nodiscard]] double* row(std::int64_t i) { return values.data() + i * columns; }
  [[nodiscard]] const double* row(std::int64_t i) const { return values.data() + i * columns; }
};

/// x [t][a] times w [a][b]: y [t][b].
[[nodiscard]] DenseMatrix times(const DenseMatrix& x, const DenseMatrix& w);
/// dy [t][b] times the transpose of w [a][b]: dx [t][a].
[[nodiscard]] DenseMatrix times_transposed(const DenseMatrix& dy, const DenseMatrix& w);
/// dw [a][b] += the transpose of x [t][a] times dy [t][b].
void add_transposed_times(const DenseMatrix& x, const DenseMatrix& dy, DenseMatrix& dw);
void add_to(const DenseMatrix& part, DenseMatrix& sum);

/// x / sqrt(mean(x^2) + 1e-6) * gain, by row; gain [1][h].
[[nodiscard]] DenseMatrix rms_norm(const DenseMatrix& x, const DenseMatrix& gain);
/// dx of rms_norm; dgain += its own gradient.
[[nodiscard]] DenseMatrix rms_norm_backward(const DenseMatrix& x, const DenseMatrix& gain, const DenseMatrix& dy,
                                            DenseMatrix& dgain);

/// silu(gate) * up, and its gradients.
[[nodiscard]] DenseMatrix gated(const DenseMatrix& gate, const DenseMatrix& up);
void gated_backward(const DenseMatrix& gate, const DenseMatrix& up, const DenseMatrix& dy, DenseMatrix& dgate, DenseMatrix& dup);

/// Sum over the rows whose label is not -1 of -log softmax(logits)[label]; dlogits becomes the gradient of that sum.
[[nodiscard]] double cross_entropy(const DenseMatrix& logits, std::span<const std::int32_t> labels, DenseMatrix& dlogits);

}  // namespace cpfit::kernels
