#include <algorithm>

#include "model/rates/curves.h"

namespace cpfit {

namespace {

constexpr double kBlockRows = 128;  // rows per block of FlashAttention-2/3 and cuDNN at head dimension 128

/// Speed by head dimension against 128, linear between the fitted ones. Below 64 the line from 128 goes on, above what is
/// proportional to d (a kernel that is as long as its exponentials): 32 on A100 runs at 0.69 of 128, as published with yunchang.
double head_dim_share(const AttentionCurve& curve, double d) {
  if (d < 64) return std::max(curve.share_64 * d / 64, curve.share_64 - (1 - curve.share_64) * (64 - d) / 64);
  if (d <= 128) return curve.share_64 + (1 - curve.share_64) * (d - 64) / 64;
  if (d <= 192) return 1 + (curve.share_192 - 1) * (d - 128) / 64;
  if (d <= 256) return curve.share_192 + (curve.share_256 - curve.share_192) * (d - 192) / 64;
  return curve.share_256;
}

}  // namespace

double attention_seconds(const AttentionCurve& curve, const DevicePeaks& device, double peak, const AttentionShape& shape,
                         AttentionPass pass, double warm) {
  const bool forward = pass == AttentionPass::kForward;
  const double rows = static_cast<double>(forward ? shape.q_len : shape.kv_len);
  const double across = static_cast<double>(forward ? shape.kv_len : shape.q_len);
  if (rows <= 0 || across <= 0 || shape.pairs <= 0) return 0.0;
  const double lanes = static_cast<double>(shape.batch * shape.heads);
  const double d_qk = static_cast<double>(shape.head_dim);
  const double d_v = shape.head_dim_v > 0 ? static_cast<double>(shape.head_dim_v) : d_qk;

  const double waves = lanes * ceiling(rows / kBlockRows) / device.sm_count;
  const double rounded = waves + curve.wave_rounding * (ceiling(waves) - waves);
  const double mean = shape.pairs / rows + (shape.causal ? curve.diagonal : 0.0);
  const double longest = shape.causal ? std::min(across, 2 * shape.pairs / rows) : shape.pairs / rows;
  const double speed = curve.peak_share * head_dim_share(curve, d_qk) *
                       (shape.deterministic && !forward ? curve.deterministic_share : 1.0) *
                       (shape.causal ? curve.causal_share : 1.0);
  const double unit = kBlockRows * flops_per_pair(pass, d_qk, d_v) * device.sm_count / (speed * peak);
  const double busy = std::max(rounded * (mean + curve.half), longest + curve.half) * unit;
  const double prepared = curve.preparation * 2.0 * static_cast<double>(shape.batch) * rows *
                          (static_cast<double>(shape.heads) + 2.0 * static_cast<double>(shape.kv_heads)) * d_qk / device.hbm;
  return curve.launch + busy * sustained_factor(curve.sustained_loss, curve.sustained, busy, warm) + prepared;
}

}  // namespace cpfit
