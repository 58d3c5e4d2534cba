// What each model family's configuration class means, as data: key names, defaults, biases, norms, windows. Private to
// config_json.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "model/transformer/architecture.h"

namespace cpfit::config {

/// Where a bias comes from: a key with a default, or a constant of the family.
struct Flag {
  std::string_view key;  // empty: always `otherwise`
  bool otherwise = false;
};

enum class KvHeads : std::uint8_t { kAsHeads, kRequired, kNone };  // when num_key_value_heads is absent; kNone: no such key
enum class Window : std::uint8_t {
  kNone,       // the family has no sliding window
  kPlain,      // sliding_window, on every layer
  kSwitched,   // only with use_sliding_window, from layer max_window_layers on
  kPatterned,  // every window_period-th layer is global
};

/// Key names that differ between families.
struct Keys {
  std::string_view layers = "num_hidden_layers";
  std::string_view hidden = "hidden_size";
  std::string_view ffn = "intermediate_size";
  std::string_view heads = "num_attention_heads";
  std::string_view kv_heads = "num_key_value_heads";
  std::string_view head_dim = "head_dim";
  std::string_view vocab = "vocab_size";
  std::string_view positions = "max_position_embeddings";
  std::string_view activation = "hidden_act";
  std::string_view activation_first = {};  // read before `activation` when present (Gemma's hidden_activation)
  std::string_view hidden_dropout = {};
  std::string_view attention_dropout = "attention_dropout";
};

struct Family {
  std::string_view model_type;
  Keys keys = {};
  Norm norm = Norm::kRms;
  bool gated = true;
  std::string_view activation;  // of the configuration class, when the file names none
  PositionKind position = PositionKind::kRope;
  bool tied = false;                                    // default of tie_word_embeddings
  Flag qkv_bias = {}, output_bias = {}, mlp_bias = {};  // default: none
  KvHeads kv_heads = KvHeads::kAsHeads;
  std::string_view kv_heads_switch = {};  // a key that, when false, makes KV heads as many as query heads
  std::int64_t heads_default = 0, kv_heads_default = 0, vocab_default = 0;  // of the class, where published files rely on them
  std::int64_t head_dim = 0;                                                // of the configuration class; 0: hidden / heads
  bool qk_norm = false;
  bool qk_norm_all_heads = false;
  std::int64_t norms_per_layer = 2;
  Window window = Window::kNone;
  std::int64_t window_default = 0;  // sliding_window when the key is absent; null in the file is none
  std::int64_t period_default = 0;
  double dropout_default = 0.0;
  std::int64_t ffn_per_hidden = 0;  // F = this times H when the key is absent or null; 0: required
};

[[nodiscard]] std::span<const Family> families();

/// Model types that cpfit refuses with a reason, because the formulas of a dense decoder do not hold for them.
struct Refused {
  std::string_view model_type;
  std::string_view reason;  // "a mixture-of-experts model"
};
[[nodiscard]] std::span<const Refused> refused_types();

}  // namespace cpfit::config
