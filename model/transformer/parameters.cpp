#include "model/transformer/parameters.h"

namespace cpfit {

ParameterCount count_parameters(const Architecture& model) {
  const std::int64_t hidden = model.hidden;
  const std::int64_t query = model.heads * model.head_dim;
  const std::int64_t key_value = model.kv_heads * model.head_dim;
  const std::int64_t up_matrices = model.gated() ? 2 : 1;
  const std::int64_t norm = (model.norm == Norm::kLayer ? 2 : 1) * hidden;  // LayerNorm has a weight and a bias

  ParameterCount count;
  count.layers = model.layers;
  LayerParameters& layer = count.layer;
  layer.qkv = hidden * (query + 2 * key_value);
  layer.qkv_bias = model.qkv_bias ? query + 2 * key_value : 0;
  layer.attention_output = query * hidden;
  layer.mlp_in = up_matrices * hidden * model.ffn_hidden;
  layer.mlp_in_bias = model.mlp_bias ? up_matrices * model.ffn_hidden : 0;
  layer.mlp_out = model.ffn_hidden * hidden;
  layer.output_biases = (model.attention_output_bias ? hidden : 0) + (model.mlp_bias ? hidden : 0);
  layer.norms = model.norms_per_layer * norm;
  if (model.qk_norm) layer.norms += model.qk_norm_all_heads ? query + key_value : 2 * model.head_dim;

  count.embedding = model.vocab * hidden;
  count.positions = model.position == PositionKind::kLearned ? model.max_positions * hidden : 0;
  count.final_norm = norm;
  count.head = model.tied_embeddings ? 0 : model.vocab * hidden;
  return count;
}

std::int64_t padded_vocab(std::int64_t vocab, std::int64_t divisor, std::int64_t tp) {
  const std::int64_t multiple = divisor * tp;
  return (vocab + multiple - 1) / multiple * multiple;
}

}  // namespace cpfit
