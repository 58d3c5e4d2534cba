#include "model/transformer/flops.h"

namespace cpfit {

TokenFlops forward_flops_per_token(const Architecture& model, double mean_context) {
  const auto hidden = static_cast<double>(model.hidden);
  const auto head_dim = static_cast<double>(model.head_dim);
  const auto heads = static_cast<double>(model.heads);
  const auto kv_heads = static_cast<double>(model.kv_heads);
  const double mlp_matrices = model.gated() ? 3.0 : 2.0;
  TokenFlops flops;
  flops.projections = Flops(2.0 * hidden * (2.0 * heads + 2.0 * kv_heads) * head_dim);
  flops.mlp = Flops(2.0 * mlp_matrices * hidden * static_cast<double>(model.ffn_hidden));
  flops.attention = Flops(4.0 * heads * head_dim * mean_context);
  flops.head = Flops(2.0 * hidden * static_cast<double>(model.vocab));
  return flops;
}

double mean_context(const Architecture& model, Tokens sequence, AttentionCount count) {
  const auto s = static_cast<double>(sequence.count());
  if (count == AttentionCount::kFull) return s;
  const auto window = static_cast<double>(model.sliding_window);
  if (model.windowed_layers() == 0 || window >= s) return s / 2.0;
  const double windowed_share = static_cast<double>(model.windowed_layers()) / static_cast<double>(model.layers);
  return windowed_share * (window - window * (window - 1.0) / (2.0 * s)) + (1.0 - windowed_share) * s / 2.0;
}

Flops training_flops_at_context(const Architecture& model, double mean_context, const FlopsConvention& convention) {
  const TokenFlops forward = forward_flops_per_token(model, mean_context);
  const double passes = convention.recompute ? 4.0 : 3.0;  // forward, backward twice a forward, and the repeated forward
  const Flops layers = (forward.projections + forward.mlp + forward.attention) * static_cast<double>(model.layers);
  return layers * passes + (convention.head ? forward.head * 3.0 : Flops(0.0));
}

Flops training_flops_per_token(const Architecture& model, Tokens sequence, const FlopsConvention& convention) {
  return training_flops_at_context(model, mean_context(model, sequence, convention.attention), convention);
}

}  // namespace cpfit
