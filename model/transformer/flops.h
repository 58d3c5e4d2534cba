// Model FLOPs per step and the conventions under which published MFU figures count them.
// A token's forward: projections 2*H*(2a+2g)*d, MLP 2*(2|3)*H*F, attention core 4*a*d*context, head 2*H*V; training is 3x.
// Source: cp_model.md C, ../shared/published/README.md (table of conventions).
#pragma once

#include "model/quantity/units.h"
#include "model/transformer/architecture.h"

namespace cpfit {

enum class AttentionCount { kCausalHalf, kFull };  // does the attention term count s/2 or s keys per query

struct FlopsConvention {
  AttentionCount attention = AttentionCount::kCausalHalf;
  bool head = true;
  bool recompute = false;  // HFU adds the recomputed forward
};

/// Forward FLOPs of one token by block. `mean_context` is the mean number of attended keys (s/2 causal, s full, sum n_i^2/(2 sum
/// n_i) documents).
struct TokenFlops {
  Flops projections;  // per layer
  Flops mlp;          // per layer
  Flops attention;    // per layer, core only
  Flops head;         // whole model
};
[[nodiscard]] TokenFlops forward_flops_per_token(const Architecture& model, double mean_context);

/// Mean keys per query, averaged over the layers: s (kFull, whatever the mask), s/2 (kCausalHalf), and in windowed layers with
/// W < s the exact W - W(W-1)/(2s) (Megatron-Bridge).
[[nodiscard]] double mean_context(const Architecture& model, Tokens sequence, AttentionCount count);

/// Training FLOPs (forward + backward = 3x forward) per token at a mean context. With `recompute` the layers, not the head, run
/// forward once more (full recomputation, Narayanan 2021).
[[nodiscard]] Flops training_flops_at_context(const Architecture& model, double mean_context, const FlopsConvention& convention);

/// The same for sequences of `sequence` tokens.
[[nodiscard]] Flops training_flops_per_token(const Architecture& model, Tokens sequence, const FlopsConvention& convention);

}  // namespace cpfit
