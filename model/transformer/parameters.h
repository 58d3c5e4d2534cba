// Parameter counts, exact, by block; per rank under tensor parallelism; vocabulary padding.
// Source of the layout: Megatron-LM's and Hugging Face's module definitions (see ../shared/reference/cp_model.md B.1).
#pragma once

#include <cstdint>

#include "model/transformer/architecture.h"

namespace cpfit {

/// Parameters of one layer. `*_sharded` divide by tp, `replicated` do not.
struct LayerParameters {
  std::int64_t qkv = 0;               // H*(a+2g)*d, sharded
  std::int64_t qkv_bias = 0;          // (a+2g)*d, sharded
  std::int64_t attention_output = 0;  // a*d*H, sharded
  std::int64_t mlp_in = 0;            // H*F (x2 when gated), sharded
  std::int64_t mlp_in_bias = 0;       // F (x2 when gated), sharded
  std::int64_t mlp_out = 0;           // F*H, sharded
  std::int64_t output_biases = 0;     // H each for attention output and MLP output, replicated
  std::int64_t norms = 0;             // replicated, with q/k norms
  [[nodiscard]] std::int64_t sharded() const { return qkv + qkv_bias + attention_output + mlp_in + mlp_in_bias + mlp_out; }
  [[nodiscard]] std::int64_t replicated() const { return output_biases + norms; }
  [[nodiscard]] std::int64_t total() const { return sharded() + replicated(); }
};

struct ParameterCount {
  LayerParameters layer;
  std::int64_t layers = 0;
  std::int64_t embedding = 0;  // V*H
  std::int64_t positions = 0;  // learned positions
  std::int64_t final_norm = 0;
  std::int64_t head = 0;  // 0 when tied
  [[nodiscard]] std::int64_t total() const { return layers * layer.total() + embedding + positions + final_norm + head; }
};

[[nodiscard]] ParameterCount count_parameters(const Architecture& model);

/// Vocabulary rounded up to a multiple of `divisor` * tp (Megatron: 128 * tp). divisor 1 and tp 1 leave it as published.
[[nodiscard]] std::int64_t padded_vocab(std::int64_t vocab, std::int64_t divisor, std::int64_t tp);

}  // namespace cpfit
