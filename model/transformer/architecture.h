// The shape of a dense decoder-only transformer: everything that decides parameters, FLOPs and activation bytes.
// Mixture-of-experts models are refused by the readers (config_json.h, scenario).
#pragma once

#include <cstdint>
#include <string>

namespace cpfit {

enum class Norm { kRms, kLayer };                                // RMSNorm: one vector of H; LayerNorm: two
enum class Activation { kSwiGlu, kGeGlu, kGelu, kSquaredRelu };  // gated ones have a third MLP matrix
enum class PositionKind { kRope, kLearned, kAlibi, kNone };

/// Symbols of the field in the right-hand column: H hidden, F MLP width, a query heads, g KV heads, d head size, V vocabulary.
struct Architecture {
  std::string name;
  std::int64_t layers = 0;         // L
  std::int64_t hidden = 0;         // H
  std::int64_t ffn_hidden = 0;     // F
  std::int64_t heads = 0;          // a
  std::int64_t kv_heads = 0;       // g
  std::int64_t head_dim = 0;       // d, may differ from H/a
  std::int64_t vocab = 0;          // V as published, before padding
  std::int64_t max_positions = 0;  // learned positions only: rows of the table
  Norm norm = Norm::kRms;
  Activation activation = Activation::kSwiGlu;
  PositionKind position = PositionKind::kRope;
  bool tied_embeddings = false;
  bool qkv_bias = false;  // bias on Q, K, V projections
  bool attention_output_bias = false;
  bool mlp_bias = false;             // bias on every MLP matrix
  bool qk_norm = false;              // RMSNorm of d on Q and on K (Qwen 3, Gemma 3)
  bool qk_norm_all_heads = false;    // with qk_norm: over all heads, a*d and g*d weights (OLMo 2)
  std::int64_t norms_per_layer = 2;  // 4 with post-norms (Gemma 2, 3)
  std::int64_t sliding_window = 0;   // tokens; 0 = none
  std::int64_t window_period = 0;    // every window_period-th layer is global, the others windowed; 0 = all layers windowed
  double hidden_dropout = 0.0;       // > 0: a 1-byte mask is kept per element
  double attention_dropout = 0.0;
  std::string source;  // where the numbers come from

  [[nodiscard]] bool gated() const { return activation == Activation::kSwiGlu || activation == Activation::kGeGlu; }
  /// Layers that attend through the sliding window; the others attend to the whole prefix.
  [[nodiscard]] std::int64_t windowed_layers() const { return windowed_layers(0, layers); }
  /// Of the layers [first, first + count): every window_period-th of the model, counted from one, is global.
  [[nodiscard]] std::int64_t windowed_layers(std::int64_t first, std::int64_t count) const {
    if (sliding_window == 0) return 0;
    return window_period == 0 ? count : count - ((first + count) / window_period - first / window_period);
  }
  friend bool operator==(const Architecture&, const Architecture&) = default;
};

}  // namespace cpfit
