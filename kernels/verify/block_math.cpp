#include "kernels/verify/block_math.h"

#include <algorithm>
#include <cmath>

namespace cpfit::kernels {

namespace {

constexpr double kNormEpsilon = 1e-6;

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

double inverse_rms(const double* x, std::int64_t n) {
  double squares = 0;
  for (std::int64_t i = 0; i < n; ++i) squares += x[i] * x[i];
  return 1.0 / std::sqrt(squares / static_cast<double>(n) + kNormEpsilon);
}

}  // namespace

DenseMatrix times(const DenseMatrix& x, const DenseMatrix& w) {
  DenseMatrix y(x.rows, w.columns);
  for (std::int64_t t = 0; t < x.rows; ++t) {
    for (std::int64_t a = 0; a < x.columns; ++a) {
      const double factor = x.row(t)[a];
      const double* from = w.row(a);
      double* to = y.row(t);
      for (std::int64_t b = 0; b < w.columns; ++b) to[b] += factor * from[b];
    }
  }
  return y;
}

DenseMatrix times_transposed(const DenseMatrix& dy, const DenseMatrix& w) {
  DenseMatrix dx(dy.rows, w.rows);
  for (std::int64_t t = 0; t < dy.rows; ++t) {
    for (std::int64_t a = 0; a < w.rows; ++a) {
      double sum = 0;
      for (std::int64_t b = 0; b < w.columns; ++b) sum += dy.row(t)[b] * w.row(a)[b];
      dx.row(t)[a] = sum;
    }
  }
  return dx;
}

void add_transposed_times(const DenseMatrix& x, const DenseMatrix& dy, DenseMatrix& dw) {
  for (std::int64_t t = 0; t < x.rows; ++t) {
    for (std::int64_t a = 0; a < x.columns; ++a) {
      const double factor = x.row(t)[a];
      for (std::int64_t b = 0; b < dy.columns; ++b) dw.row(a)[b] += factor * dy.row(t)[b];
    }
  }
}

void add_to(const DenseMatrix& part, DenseMatrix& sum) {
  std::ranges::transform(part.values, sum.values, sum.values.begin(), [](double a, double b) { return a + b; });
}

DenseMatrix rms_norm(const DenseMatrix& x, const DenseMatrix& gain) {
  DenseMatrix y(x.rows, x.columns);
  for (std::int64_t t = 0; t < x.rows; ++t) {
    const double inverse = inverse_rms(x.row(t), x.columns);
    for (std::int64_t i = 0; i < x.columns; ++i) y.row(t)[i] = x.row(t)[i] * inverse * gain.values[static_cast<std::size_t>(i)];
  }
  return y;
}

// y_i = g_i x_i r with r = (mean(x^2) + e)^(-1/2): dx_i = r (g_i dy_i - x_i r^2 / n * sum_j g_j dy_j x_j).
DenseMatrix rms_norm_backward(const DenseMatrix& x, const DenseMatrix& gain, const DenseMatrix& dy, DenseMatrix& dgain) {
  DenseMatrix dx(x.rows, x.columns);
  for (std::int64_t t = 0; t < x.rows; ++t) {
    const double* in = x.row(t);
    const double* out = dy.row(t);
    const double inverse = inverse_rms(in, x.columns);
    double along = 0;
    for (std::int64_t i = 0; i < x.columns; ++i) {
      along += gain.values[static_cast<std::size_t>(i)] * out[i] * in[i];
      dgain.values[static_cast<std::size_t>(i)] += out[i] * in[i] * inverse;
    }
    along *= inverse * inverse / static_cast<double>(x.columns);
    for (std::int64_t i = 0; i < x.columns; ++i) {
      dx.row(t)[i] = inverse * (gain.values[static_cast<std::size_t>(i)] * out[i] - in[i] * along);
    }
  }
  return dx;
}

DenseMatrix gated(const DenseMatrix& gate, const DenseMatrix& up) {
  DenseMatrix y(gate.rows, gate.columns);
  for (std::size_t i = 0; i < y.values.size(); ++i) y.values[i] = gate.values[i] * sigmoid(gate.values[i]) * up.values[i];
  return y;
}

void gated_backward(const DenseMatrix& gate, const DenseMatrix& up, const DenseMatrix& dy, DenseMatrix& dgate, DenseMatrix& dup) {
  dgate = DenseMatrix(gate.rows, gate.columns);
  dup = DenseMatrix(gate.rows, gate.columns);
  for (std::size_t i = 0; i < dy.values.size(); ++i) {
    const double g = gate.values[i];
    const double s = sigmoid(g);
    dup.values[i] = dy.values[i] * g * s;
    dgate.values[i] = dy.values[i] * up.values[i] * s * (1.0 + g * (1.0 - s));
  }
}

double cross_entropy(const DenseMatrix& logits, std::span<const std::int32_t> labels, DenseMatrix& dlogits) {
  dlogits = DenseMatrix(logits.rows, logits.columns);
  double loss = 0;
  for (std::int64_t t = 0; t < logits.rows; ++t) {
    const std::int32_t label = labels[static_cast<std::size_t>(t)];
    if (label < 0) continue;
    const double* row = logits.row(t);
    const double high = *std::max_element(row, row + logits.columns);
    double sum = 0;
    for (std::int64_t i = 0; i < logits.columns; ++i) sum += std::exp(row[i] - high);
    const double lse = high + std::log(sum);
    loss += lse - row[label];
    for (std::int64_t i = 0; i < logits.columns; ++i) dlogits.row(t)[i] = std::exp(row[i] - lse) - (i == label ? 1.0 : 0.0);
  }
  return loss;
}

}  // namespace cpfit::kernels
