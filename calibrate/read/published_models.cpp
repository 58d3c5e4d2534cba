// Architectures behind the names that published tables print. Shapes come from the model presets where one exists; the others
// stand here with the page they were read from.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "calibrate/read/published_run.h"
#include "model/transformer/presets.h"

namespace cpfit::published {

namespace {

/// The tables' own keys and the names under which model/presets/models.toml knows the same models.
constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kPresetOfKey{{
    {"llama2_7b", "llama2-7b"},
    {"llama2_13b", "llama2-13b"},
    {"llama2_70b", "llama2-70b"},
    {"llama3_8b", "llama3-8b"},
    {"llama3_70b", "llama3-70b"},
    {"llama3.1_405b", "llama3.1-405b"},
    {"gpt3_175b", "gpt3-175b"},
    {"qwen3_32b", "qwen3-32b"},
    {"llama2-7b", "llama2-7b"},
    {"llama2-13b", "llama2-13b"},
    {"llama2-70b", "llama2-70b"},
    {"llama3-8b", "llama3-8b"},
}};

std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c))) out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

/// Nemotron: squared ReLU, RoPE, LayerNorm, no biases, untied, F = 4H (NeMo nemotron.py @0037ec8: 8B, 15B, 340B). The 22B is not
/// in that file; 40 layers with as many KV as query heads reproduce the 130.3 GFLOP per token that its published rows imply.
Architecture nemotron(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t kv_heads) {
  Architecture model = llama_model(layers, hidden, 4 * hidden, heads, kv_heads, 256000);
  model.norm = Norm::kLayer;
  model.activation = Activation::kSquaredRelu;
  model.source =
      "NeMo nemotron.py @0037ec8; 22B inferred from its rows' FLOPs per token; vocabulary 256000 from memory, agrees with those "
      "FLOPs";
  return model;
}

/// MPT: GELU of 4H, biases, learned positions, tied embeddings of 50368. Inferred: this shape gives every parameter count of the
/// llm-foundry table exactly (54 combinations of size and length); the numbers of heads are from memory.
Architecture mpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  Architecture model = gpt_model(layers, hidden, heads, 50368, 2048);
  model.source = "inferred from the parameter counts of the llm-foundry table, exact; heads from memory";
  return model;
}

Architecture named(Architecture model, std::string_view name) {
  model.name = name;
  return model;
}

std::optional<Architecture> first_preset(std::initializer_list<std::string_view> names) {
  for (const auto name : names) {
    if (auto found = find_model(std::string(name)); found.ok()) return std::move(found).value();
  }
  return std::nullopt;
}

}  // namespace

Architecture gpt_model(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t vocab, std::int64_t positions) {
  Architecture model;
  model.layers = layers;
  model.hidden = hidden;
  model.ffn_hidden = 4 * hidden;
  model.heads = model.kv_heads = heads;
  model.head_dim = heads > 0 ? hidden / heads : 0;
  model.vocab = vocab;
  model.max_positions = positions;
  model.norm = Norm::kLayer;
  model.activation = Activation::kGelu;
  model.position = PositionKind::kLearned;
  model.tied_embeddings = true;
  model.qkv_bias = model.attention_output_bias = model.mlp_bias = true;
  model.source = "Megatron-LM GPT defaults";
  return model;
}

Architecture llama_model(std::int64_t layers, std::int64_t hidden, std::int64_t ffn, std::int64_t heads, std::int64_t kv_heads,
                         std::int64_t vocab) {
  Architecture model;
  model.layers = layers;
  model.hidden = hidden;
  model.ffn_hidden = ffn;
  model.heads = heads;
  model.kv_heads = kv_heads;
  model.head_dim = heads > 0 ? hidden / heads : 0;
  model.vocab = vocab;
  model.source = "Llama family";
  return model;
}

std::optional<Architecture> model_by_key(std::string_view arch_key) {
  if (arch_key.empty()) return std::nullopt;
  for (const auto& [key, preset] : kPresetOfKey) {
    if (key != arch_key) continue;
    if (auto found = find_model(std::string(preset)); found.ok()) return std::move(found).value();
  }
  return std::nullopt;
}

std::optional<Architecture> model_by_name(std::string_view printed) {
  const std::string name = plain(printed);
  const auto has = [&](std::string_view word) { return name.find(word) != std::string::npos; };
  if (has("llama")) {
    if (has("405b")) return first_preset({"llama3.1-405b", "llama3-405b"});
    if (has("llama27b") || has("llama7b")) return first_preset({"llama2-7b"});
    if (has("llama213b") || has("llama13b")) return first_preset({"llama2-13b"});
    if (has("llama270b")) return first_preset({"llama2-70b"});
    if (has("llama370b") || has("llama3170b") || has("llama70b")) return first_preset({"llama3-70b"});
    if (has("llama38b") || has("llama318b")) return first_preset({"llama3-8b"});
    return std::nullopt;
  }
  if (has("nemotron") && !has("nemotronh")) {
    if (has("340b")) return named(nemotron(96, 18432, 96, 8), "nemotron4-340b");
    if (has("15b")) return named(nemotron(32, 6144, 48, 8), "nemotron4-15b");
    if (has("22b")) return named(nemotron(40, 6144, 48, 48), "nemotron3-22b");
    if (has("8b")) return named(nemotron(32, 4096, 32, 32), "nemotron3-8b");
    return std::nullopt;
  }
  // NeMo-Framework-Launcher conf/training/gpt3/5b.yaml @00af8f2, 20b.yaml @056a90e; GPT-2 vocabulary padded to 51200.
  if (has("gpt35b") || has("gpt5b")) return named(gpt_model(24, 4096, 32, 51200, 2048), "gpt3-5b");
  if (has("gpt320b")) return named(gpt_model(44, 6144, 48, 51200, 2048), "gpt3-20b");
  if (has("gpt3175b") || has("gpt175b") || has("nemomegatron")) return named(gpt_model(96, 12288, 96, 51200, 2048), "gpt3-175b");
  if (has("mpt")) {
    if (has("125m")) return named(mpt(12, 768, 12), "mpt-125m");
    if (has("350m")) return named(mpt(24, 1024, 16), "mpt-350m");
    if (has("760m")) return named(mpt(24, 1536, 12), "mpt-760m");
    if (has("13b")) return named(mpt(40, 5120, 40), "mpt-13b");
    if (has("30b")) return named(mpt(48, 7168, 56), "mpt-30b");
    if (has("70b")) return named(mpt(80, 8192, 64), "mpt-70b");
    if (has("1b")) return named(mpt(24, 2048, 16), "mpt-1b");
    if (has("3b")) return named(mpt(32, 2560, 20), "mpt-3b");
    if (has("7b")) return named(mpt(32, 4096, 32), "mpt-7b");
    return std::nullopt;
  }
  // InternEvo configs/_base_/models/internlm_7B.py and internlm_20B.py @0aa6d26; F = 8/3 H rounded up to 256.
  if (has("internlm7b")) return named(llama_model(32, 4096, 11008, 32, 32, 103168), "internlm-7b");
  if (has("internlm20b")) return named(llama_model(60, 5120, 13824, 40, 40, 103168), "internlm-20b");
  if (has("tinyllama")) return named(llama_model(22, 2048, 5632, 32, 4, 32000), "tinyllama-1.1b");
  return std::nullopt;
}

namespace {

/// Shapes by a plain word of the name that no preset has. Llama 1: arXiv 2302.13971 table 2; Code Llama 34B: its config.json;
/// GPT-3: arXiv 2005.14165 table 2.1 (XL with 16 heads of 128 and 13B with 5120, as they are trained: 24 heads do not divide
/// 2048).
std::optional<Architecture> shape_by_name(const std::string& name) {
  const auto has = [&](std::string_view word) { return name.find(word) != std::string::npos; };
  if (has("llama")) {
    if (has("65b")) return named(llama_model(80, 8192, 22016, 64, 64, 32000), "llama-65b");
    if (has("34b")) return named(llama_model(48, 8192, 22016, 64, 8, 32000), "codellama-34b");
    if (has("33b") || has("30b")) return named(llama_model(60, 6656, 17920, 52, 52, 32000), "llama-30b");
    if (has("70b")) return first_preset({"llama3-70b"});
    if (has("13b")) return first_preset({"llama2-13b"});
    if (has("8b")) return first_preset({"llama3-8b"});
    if (has("7b")) return first_preset({"llama2-7b"});
    if (has("3b")) return first_preset({"llama3.2-3b"});
    if (has("1b")) return first_preset({"llama3.2-1b"});
    return std::nullopt;
  }
  if (!has("gpt3") && !has("gpt")) return std::nullopt;
  struct Size {
    std::string_view word;
    std::int64_t layers, hidden, heads;
  };
  constexpr Size kSizes[] = {{"125m", 12, 768, 12},  {"350m", 24, 1024, 16}, {"760m", 24, 1536, 16}, {"13b", 40, 5120, 40},
                             {"1.3b", 24, 2048, 16}, {"2.7b", 32, 2560, 32}, {"6.7b", 32, 4096, 32}};
  for (const Size& size : kSizes) {
    if (has(size.word))
      return named(gpt_model(size.layers, size.hidden, size.heads, 51200, 2048), fmt::format("gpt3-{}", size.word));
  }
  return std::nullopt;
}

std::string lower(std::string_view text) {
  std::string out;
  for (const char c : text) out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

/// From layers, hidden size and heads alone: a GPT where the name says so, else a Llama; what is blank as these families have it.
std::optional<Architecture> shape_by_columns(const Row& row) {
  const auto layers = row.integer("layers"), hidden = row.integer("hidden"), heads = row.integer("heads");
  if (!layers || !hidden || !heads || *layers <= 0 || *hidden <= 0 || *heads <= 0 || *hidden % *heads != 0) return std::nullopt;
  constexpr std::int64_t kMultiple = 256;  // Llama rounds 8/3 H up to it
  const std::int64_t gated = (8 * *hidden / 3 + kMultiple - 1) / kMultiple * kMultiple;
  const bool gpt = row.says("model", "gpt") || row.says("model", "opt") || row.says("model", "bloom");
  Architecture model = gpt ? gpt_model(*layers, *hidden, *heads, 51200, row.integer("seq_len").value_or(2048))
                           : llama_model(*layers, *hidden, gated, *heads, *heads, 32000);
  model.source = "the row's own columns";
  return named(std::move(model), row.text("model"));
}

}  // namespace

std::optional<Architecture> model_of_columns(const Row& row) {
  const std::string name(row.text("model"));
  std::optional<Architecture> model = shape_by_columns(row);
  if (name.empty()) return model ? std::optional(with_printed_shape(std::move(*model), row)) : std::nullopt;
  if (auto preset = find_model(name); preset.ok()) {
    model = std::move(preset).value();
  } else if (auto first = find_model(name + "-v0.1"); first.ok()) {
    model = std::move(first).value();
  } else if (!model) {
    model = shape_by_name(lower(name));
  }
  if (!model) return std::nullopt;
  return with_printed_shape(std::move(*model), row);
}

Architecture with_printed_shape(Architecture model, const Row& row) {
  const auto take = [&](std::string_view column, std::int64_t& field) {
    if (const auto value = row.integer(column)) field = *value;
  };
  take("layers", model.layers);
  take("kv_heads", model.kv_heads);
  take("vocab", model.vocab);
  take("ffn_hidden", model.ffn_hidden);
  return model;
}

bool is_mixture_of_experts(std::string_view model) {
  for (const std::string_view word : {"grok", "deepseek", "mixtral", "a3b", "a22b", "gpt oss", "gpt-oss", "kimi", "nemotron_3",
                                      "moe", "maverick", "scout", "qwen3-235b", "qwen3-30b", "qwen3-next", "llama4"}) {
    if (contains_word(model, word)) return true;
  }
  return false;
}

}  // namespace cpfit::published
