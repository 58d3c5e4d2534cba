// The truth: attention of the whole sequence, unsharded, in double, written from its definition and slow. Tensors are plain
// numbers in the shapes of operators.h. The mask is asked pair by pair (attention::attends), so nothing that the kernels read is
// shared. With s_q != s_kv the query of row i stands at i + s_kv - s_q (bottom-right aligned); packed documents need equal
// lengths. A query that sees nothing has out 0, lse -inf and gradient 0. Source: cp_model.md E.1-E.3.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/core/operators.h"

namespace cpfit::kernels {

struct TrueAttention {
  std::vector<double> out;  // [s_q][h_q * d_v]
  std::vector<double> lse;  // [s_q][h_q]
};

struct TrueGradients {
  std::vector<double> dq;  // [s_q ][h_q  * d_qk]
  std::vector<double> dk;  // [s_kv][h_kv * d_qk]
  std::vector<double> dv;  // [s_kv][h_kv * d_v ]
};

/// Lengths follow from the sizes of q and k.
[[nodiscard]] TrueAttention true_attention(const Heads& heads, const attention::MaskView& mask, std::span<const double> q,
                                           std::span<const double> k, std::span<const double> v);

/// Gradients of sum(out * dout).
[[nodiscard]] TrueGradients true_gradients(const Heads& heads, const attention::MaskView& mask, std::span<const double> q,
                                           std::span<const double> k, std::span<const double> v, std::span<const double> dout);

}  // namespace cpfit::kernels
