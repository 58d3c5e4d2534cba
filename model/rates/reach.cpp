#include "model/rates/reach.h"

namespace cpfit {

namespace {

double real(std::int64_t count) { return static_cast<double>(count); }

}  // namespace

Reach reach_of(const GemmCurve& curve, const GemmShape& shape) {
  return reach(curve.m, real(shape.m)) | reach(curve.n, real(shape.n)) | reach(curve.k, real(shape.k));
}

Reach reach_of(const AttentionCurve& curve, const AttentionShape& shape) {
  // Far fewer pairs than the mask's rectangle holds.
  const double full = real(shape.q_len) * real(shape.kv_len) * (shape.causal ? 0.5 : 1.0);
  const double heads = real(shape.batch * shape.heads);
  Reach lanes = reach(curve.heads, heads);
  lanes.below = heads * real(shape.q_len) < curve.heads.low * curve.q_len.low;
  Reach all = reach(curve.q_len, real(shape.q_len)) | reach(curve.kv_len, real(shape.kv_len)) | lanes;
  all.below = all.below || shape.pairs < 0.8 * full;
  return all;
}

}  // namespace cpfit
