// Attention of one block on the CPU, forward and backward, tile by tile as FlashAttention orders it: products of tiles by BLAS,
// the rest by rows (score_rows.h). Everything is in Real (float or double); blocks of 16-bit numbers come widened and say so in
// `rounding`: probabilities and score gradients are then rounded to that type before they are multiplied, as tensor cores take
// them. Shapes as in operators.h, rows without gaps. Source: cp_model.md E.1-E.3.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/core/operators.h"

namespace cpfit::kernels {

/// One block's inputs.
template <class Real>
struct WideBlock {
  Heads heads;
  const BlockMask& mask;
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  const Real* q = nullptr;
  const Real* k = nullptr;
  const Real* v = nullptr;
  Number rounding = Number::kFp32;                       // the type that the inputs were stored in
  const std::function<void()>* between_tiles = nullptr;  // called after each tile of scores, when there is one
};

/// out [s_q][h_q * d_v], lse [s_q][h_q].
template <class Real>
void attend_block(const WideBlock<Real>& block, Real* out, Real* lse);

/// dq, dk, dv are overwritten. Rows whose lse is not finite attended to nothing: gradient 0.
template <class Real>
void differentiate_block(const WideBlock<Real>& block, const Real* dout, const Real* lse, const Real* delta, Real* dq, Real* dk,
                         Real* dv);

/// Makes BLAS compute in the calling thread alone: ranks are threads or processes themselves.
void use_one_blas_thread();

}  // namespace cpfit::kernels
