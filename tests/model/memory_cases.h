// Cases for the tests of the memory ledger: a MemoryCase refers to its parts, so a test keeps them in one value.
#pragma once

#include <cmath>
#include <numeric>

#include "model/memory/ledger.h"

namespace cpfit::test {

struct LedgerCase {
  Architecture model;
  Training training;
  Recipe recipe;
  RuleSet rules;
  Gpu gpu;
  ResolvedLayout layout;

  [[nodiscard]] MemoryCase at() const { return {model, training, recipe, rules, gpu, layout}; }

  /// Spreads the layers evenly over pp * vpp chunks.
  LedgerCase& even() {
    const int chunks = recipe.pp * recipe.vpp;
    layout.layers_of_chunk.assign(static_cast<std::size_t>(chunks), static_cast<std::int32_t>(model.layers / chunks));
    layout.layers_of_stage.assign(static_cast<std::size_t>(recipe.pp), static_cast<std::int32_t>(model.layers / recipe.pp));
    recipe.schedule = recipe.vpp > 1 ? Schedule::kInterleaved : Schedule::kOneFOneB;
    return *this;
  }
};

inline Gpu gpu_of(const std::string& generation) {
  Gpu gpu;
  gpu.name = generation;
  gpu.generation = generation;
  gpu.memory = gib(80);
  gpu.memory_usable = gib(79);
  return gpu;
}

/// A Llama-style model: RMSNorm, SwiGLU, RoPE, untied, no bias, no dropout.
inline Architecture llama(std::int64_t layers, std::int64_t hidden, std::int64_t ffn, std::int64_t heads, std::int64_t kv_heads,
                          std::int64_t vocab) {
  Architecture model;
  model.layers = layers;
  model.hidden = hidden;
  model.ffn_hidden = ffn;
  model.heads = heads;
  model.kv_heads = kv_heads;
  model.head_dim = hidden / heads;
  model.vocab = vocab;
  return model;
}

/// A GPT-style model as Megatron's tests train it: LayerNorm, GELU, biases, learned positions, dropout 0.1.
inline Architecture gpt(std::int64_t layers, std::int64_t hidden, std::int64_t ffn, std::int64_t heads, std::int64_t kv_heads,
                        std::int64_t vocab, std::int64_t positions) {
  Architecture model = llama(layers, hidden, ffn, heads, kv_heads, vocab);
  model.norm = Norm::kLayer;
  model.activation = Activation::kGelu;
  model.position = PositionKind::kLearned;
  model.max_positions = positions;
  model.qkv_bias = model.attention_output_bias = model.mlp_bias = true;
  model.hidden_dropout = model.attention_dropout = 0.1;
  return model;
}

inline double total(const std::array<Bytes, kComponentCount>& components) {
  return std::accumulate(components.begin(), components.end(), Bytes()).value();
}

inline double component(const std::array<Bytes, kComponentCount>& components, Component which) {
  return components[static_cast<std::size_t>(which)].value();
}

}  // namespace cpfit::test
