#include "model/rates/reach.h"

namespace cpfit {

namespace {

double number(std::int64_t count) { return static_cast<double>(count); }

}  // namespace

Reach reach_of(const GemmCurve& curve, const GemmShape& shape) {
  return reach(curve.m, number(shape.m)) | reach(curve.n, number(shape.n)) | reach(curve.k, number(shape.k));
}

Reach reach_of(const AttentionCurve& curve, const AttentionShape& shape) {
  // Far fewer pairs than the mask's rectangle holds.
  const double full = number(shape.q_len) * number(shape.kv_len) * (shape.causal ? 0.5 : 1.0);
  const double heads = number(shape.batch * shape.heads);
  Reach lanes = reach(curve.heads, heads);
  lanes.below = heads * number(shape.q_len) < curve.heads.low * curve.q_len.low;
  Reach all = reach(curve.q_len, number(shape.q_len)) | reach(curve.kv_len, number(shape.kv_len)) | lanes;
  all.below = all.below || shape.pairs < 0.8 * full;
  return all;
}

}  // namespace cpfit
