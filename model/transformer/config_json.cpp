#include "model/transformer/config_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "model/quantity/text_file.h"
#include "model/transformer/architecture_check.h"
#include "model/transformer/config_families.h"

namespace cpfit {

namespace {

using config::Family;
using nlohmann::json;

/// A value as it stands in the file, short enough for a sentence.
std::string shown(const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > 40) text = text.substr(0, 37) + "...";
  return text;
}

/// Reads keys of one object and collects what is wrong with them.
class Reader {
 public:
  Reader(const json& object, std::string where) : object_(object), where_(std::move(where)) {}

  [[nodiscard]] bool has(std::string_view key) const { return find(key) != nullptr; }
  /// Present, even as null.
  [[nodiscard]] bool mentions(std::string_view key) const { return !key.empty() && object_.contains(key); }
  [[nodiscard]] const json* find(std::string_view key) const {
    if (key.empty()) return nullptr;
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }

  std::int64_t integer(std::string_view key, std::int64_t otherwise) {
    const json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_number_integer()) {
      wrong_type(key, *value, "a whole number");
      return otherwise;
    }
    constexpr std::int64_t kMost = std::int64_t{1} << 40;  // beyond any count of a model, small enough to multiply
    const bool too_large = value->is_number_unsigned() ? value->get<std::uint64_t>() > static_cast<std::uint64_t>(kMost)
                                                       : value->get<std::int64_t>() > kMost;
    if (too_large || (!value->is_number_unsigned() && value->get<std::int64_t>() < 0)) {
      problems.push_back({"config.range", at(key), fmt::format("{} is {}, which no model has", key, shown(*value)),
                          fmt::format("set {} to the model's own value", key)});
      return otherwise;
    }
    return value->get<std::int64_t>();
  }
  /// A count that the architecture cannot do without: at least 1, no default unless `otherwise` > 0.
  std::int64_t needed(std::string_view key, std::string_view meaning, std::int64_t otherwise = 0) {
    if (!has(key)) {
      if (otherwise == 0) {
        problems.push_back(
            {"config.missing", at(key), fmt::format("{} ({}) is missing", key, meaning),
             fmt::format("add \"{}\": <number> to the file, or take the config.json the model is published with", key)});
      }
      return otherwise;
    }
    const std::size_t before = problems.size();
    const std::int64_t value = integer(key, 0);
    if (value == 0 && problems.size() == before) {
      problems.push_back({"config.range", at(key), fmt::format("{} ({}) is 0", key, meaning),
                          fmt::format("set {} to the model's own value", key)});
    }
    return value;
  }
  bool boolean(std::string_view key, bool otherwise) {
    const json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) {
      wrong_type(key, *value, "true or false");
      return otherwise;
    }
    return value->get<bool>();
  }
  bool flag(const config::Flag& flag) { return flag.key.empty() ? flag.otherwise : boolean(flag.key, flag.otherwise); }
  double share(std::string_view key, double otherwise) {
    const json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_number() || value->get<double>() < 0.0 || value->get<double>() >= 1.0) {
      wrong_type(key, *value, "a number from 0 up to, not including, 1");
      return otherwise;
    }
    return value->get<double>();
  }
  std::string text(std::string_view key, std::string_view otherwise) {
    const json* value = find(key);
    if (value == nullptr) return std::string(otherwise);
    if (!value->is_string()) {
      wrong_type(key, *value, "a string");
      return std::string(otherwise);
    }
    return value->get<std::string>();
  }

  [[nodiscard]] std::string at(std::string_view key) const { return fmt::format("{}/{}", where_, key); }
  void wrong_type(std::string_view key, const json& value, std::string_view wanted) {
    problems.push_back({"config.type", at(key), fmt::format("{} is {}, but must be {}", key, shown(value), wanted),
                        fmt::format("write {} as {}", key, wanted)});
  }

  Problems problems;

 private:
  const json& object_;
  std::string where_;
};

Problem syntax_problem(std::string_view text, const std::string& where, std::size_t byte, std::string_view what) {
  std::size_t line = 1, column = 1;
  for (std::size_t i = 0; i + 1 < byte && i < text.size(); ++i) {
    column = text[i] == '\n' ? 1 : column + 1;
    line += text[i] == '\n' ? 1 : 0;
  }
  // The library's sentence starts with its own tag and position; ours is in `where`.
  const std::size_t tag = what.rfind(": syntax error");
  std::string reason(tag == std::string_view::npos
                         ? what.substr(what.find("] ") == std::string_view::npos ? 0 : what.find("] ") + 2)
                         : what.substr(tag + 2));
  return {"config.syntax", fmt::format("{}:{}:{}", where, line, column), fmt::format("this is not valid JSON: {}", reason),
          "repair the file at this place, or download config.json again"};
}

std::optional<Problem> refusal(const Reader& reader, const std::string& type, const std::string& where) {
  for (const config::Refused& refused : config::refused_types()) {
    if (refused.model_type == type) {
      return Problem{"config.refused", where,
                     fmt::format("model_type \"{}\" is {}, and cpfit plans dense decoders only", type, refused.reason),
                     "use a dense model of the size you have in mind (cpfit presets models)"};
    }
  }
  for (const char* key : {"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "num_moe_experts"}) {
    const json* value = reader.find(key);
    if (value == nullptr || (value->is_number() && value->get<double>() <= 1.0)) continue;
    return Problem{"config.refused", reader.at(key),
                   fmt::format("{} is {}: a mixture-of-experts model, and cpfit plans dense decoders only", key, shown(*value)),
                   "use a dense model of the size you have in mind (cpfit presets models)"};
  }
  if (const json* rank = reader.find("kv_lora_rank"); rank != nullptr) {
    return Problem{"config.refused", reader.at("kv_lora_rank"),
                   fmt::format("kv_lora_rank is {}: multi-head latent attention, which cpfit does not plan", shown(*rank)),
                   "use a model with ordinary or grouped-query attention"};
  }
  return std::nullopt;
}

Problem unknown_type(const std::string& type, const std::string& where) {
  const std::vector<std::string> known = known_model_types();
  const std::string nearest = nearest_name(type, known);
  return {"config.model_type", where, fmt::format("model_type \"{}\" is not one whose defaults cpfit knows", type),
          fmt::format("{}write its numbers into the scenario's [model] table, or use one of: {}",
                      nearest.empty() ? "" : fmt::format("if the layers are those of \"{}\", say so there; else ", nearest),
                      fmt::join(known, ", "))};
}

std::optional<Activation> activation_of(std::string_view name, bool gated) {
  const bool gelu = name.starts_with("gelu") || name == "quick_gelu";
  if (gated && (name == "silu" || name == "swish" || name == "swiglu")) return Activation::kSwiGlu;
  if (gated && gelu) return Activation::kGeGlu;
  if (!gated && gelu) return Activation::kGelu;
  if (!gated && name == "relu2") return Activation::kSquaredRelu;
  return std::nullopt;
}

/// The windows of a layer_types list: all, none, or all but every p-th layer.
void read_layer_types(Reader& reader, const json& types, std::int64_t window, Architecture& model) {
  const auto refuse = [&](const std::string& message) {
    reader.problems.push_back({"config.layer_types", reader.at("layer_types"), message,
                               "leave layer_types out to plan every layer with full attention"});
  };
  if (!types.is_array() || static_cast<std::int64_t>(types.size()) != model.layers) {
    return refuse(fmt::format("layer_types must name the attention of each of the {} layers", model.layers));
  }
  std::vector<bool> global;
  for (const json& type : types) {
    if (type != "full_attention" && type != "sliding_attention") {
      return refuse(fmt::format("layer_types holds {}; cpfit knows full_attention and sliding_attention", shown(type)));
    }
    global.push_back(type == "full_attention");
  }
  const auto globals = std::count(global.begin(), global.end(), true);
  if (globals == model.layers) return;
  if (window == 0) return refuse("layer_types has sliding_attention layers, but there is no sliding_window");
  std::int64_t period = 0;  // 0 fits when no layer is global
  for (std::int64_t p = 2; globals > 0 && period == 0 && p <= model.layers; ++p) {
    bool fits = true;
    for (std::int64_t i = 0; i < model.layers && fits; ++i) fits = global[static_cast<std::size_t>(i)] == ((i + 1) % p == 0);
    if (fits) period = p;
  }
  if (globals > 0 && period == 0) return refuse("layer_types does not repeat with one period, every p-th layer full");
  model.sliding_window = window;
  model.window_period = period;
}

void read_window(Reader& reader, const Family& family, Architecture& model) {
  if (family.window == config::Window::kNone) return;
  if (family.window == config::Window::kSwitched && !reader.boolean("use_sliding_window", false)) return;
  const std::int64_t window =
      reader.mentions("sliding_window") ? reader.integer("sliding_window", 0) : family.window_default;  // null: none
  if (const json* types = reader.find("layer_types"); types != nullptr) return read_layer_types(reader, *types, window, model);
  if (window == 0) return;
  if (family.window == config::Window::kSwitched) {
    const std::int64_t first = reader.integer("max_window_layers", 28);  // layers before it attend to everything
    if (first >= model.layers) return;
    if (first > 0) {
      reader.problems.push_back(
          {"config.window", reader.at("max_window_layers"),
           fmt::format("the first {} of {} layers are global and the rest windowed, which cpfit cannot describe", first,
                       model.layers),
           "set use_sliding_window to false to plan full attention, or max_window_layers to 0"});
      return;
    }
  }
  model.sliding_window = window;
  if (family.window == config::Window::kPatterned) {
    model.window_period =
        reader.integer("sliding_window_pattern", reader.integer("_sliding_window_pattern", family.period_default));
  }
}

void read_heads(Reader& reader, const Family& family, Architecture& model) {
  const config::Keys& keys = family.keys;
  model.heads = reader.needed(keys.heads, "query heads", family.heads_default);
  const bool as_heads = family.kv_heads == config::KvHeads::kNone || !reader.boolean(family.kv_heads_switch, true) ||
                        (family.kv_heads == config::KvHeads::kAsHeads && !reader.has(keys.kv_heads));
  model.kv_heads = as_heads ? model.heads : reader.needed(keys.kv_heads, "key and value heads", family.kv_heads_default);
  if (reader.has(keys.head_dim)) {
    model.head_dim = reader.needed(keys.head_dim, "size of a head");
  } else if (family.head_dim > 0) {
    model.head_dim = family.head_dim;
  } else if (model.heads > 0) {
    model.head_dim = model.hidden / model.heads;
    if (model.hidden % model.heads != 0) {
      reader.problems.push_back({"config.head_dim", reader.at(keys.heads),
                                 fmt::format("{} = {} does not divide by {} heads", keys.hidden, model.hidden, model.heads),
                                 "add \"head_dim\", or correct one of the two"});
    }
  }
}

Architecture read_family(Reader& reader, const Family& family, const json& outer) {
  const config::Keys& keys = family.keys;
  Architecture model;
  model.layers = reader.needed(keys.layers, "layers");
  model.hidden = reader.needed(keys.hidden, "hidden size");
  const std::int64_t ffn_default = family.ffn_per_hidden * model.hidden;
  if (family.ffn_per_hidden == 0 || model.hidden > 0) {  // without a hidden size the derived width has nothing to say
    model.ffn_hidden = reader.needed(keys.ffn, "MLP width", ffn_default);
  }
  read_heads(reader, family, model);
  model.vocab = reader.needed(keys.vocab, "vocabulary size", family.vocab_default);
  model.norm = family.norm;
  model.position = family.position;
  if (family.position == PositionKind::kLearned)
    model.max_positions = reader.needed(keys.positions, "rows of the position table");
  model.qkv_bias = reader.flag(family.qkv_bias);
  model.attention_output_bias = reader.flag(family.output_bias);
  model.mlp_bias = reader.flag(family.mlp_bias);
  model.qk_norm = family.qk_norm;
  model.qk_norm_all_heads = family.qk_norm_all_heads;
  model.norms_per_layer = family.norms_per_layer;
  model.hidden_dropout = reader.share(keys.hidden_dropout, family.dropout_default);
  model.attention_dropout = reader.share(keys.attention_dropout, family.dropout_default);
  // A multimodal file may say it once, outside.
  const auto tied_outside = outer.find("tie_word_embeddings");
  const bool tied_default = tied_outside != outer.end() && tied_outside->is_boolean() ? tied_outside->get<bool>() : family.tied;
  model.tied_embeddings = reader.boolean("tie_word_embeddings", tied_default);

  const std::string_view key = reader.has(keys.activation_first) ? keys.activation_first : keys.activation;
  const std::string name = reader.text(key, family.activation);
  if (const auto activation = activation_of(name, family.gated)) {
    model.activation = *activation;
  } else {
    reader.problems.push_back({"config.activation", reader.at(key), fmt::format("activation \"{}\" is not one cpfit knows", name),
                               family.gated ? "use silu or a gelu variant" : "use a gelu variant or relu2"});
  }
  if (reader.problems.empty()) read_window(reader, family, model);
  return model;
}

}  // namespace

Outcome<Architecture> read_config_json(std::string_view text, const std::string& where) {
  json root;
  try {
    root = json::parse(text);
  } catch (const json::parse_error& error) {
    return syntax_problem(text, where, error.byte, error.what());
  } catch (const json::exception& error) {  // a number beyond double: the library gives no position
    return syntax_problem(text, where, 0, error.what());
  }
  if (!root.is_object()) {
    return Problem{"config.not_object", where, fmt::format("a config.json is an object in braces, this is {}", shown(root)),
                   "give the config.json the model is published with"};
  }
  const auto nested = root.find("text_config");
  const bool multimodal = nested != root.end() && nested->is_object();
  const json& object = multimodal ? *nested : root;
  Reader outer(root, where + "#");
  Reader reader(object, where + (multimodal ? "#/text_config" : "#"));
  std::string type = reader.text("model_type", "");
  if (multimodal && type.empty() && outer.text("model_type", "") == "gemma3") type = "gemma3_text";
  if (!reader.problems.empty()) return reader.problems;
  if (const auto refused = refusal(reader, type, reader.at("model_type"))) return *refused;
  if (type.empty()) {
    return Problem{"config.missing", reader.at("model_type"), "model_type (the family of the model) is missing",
                   "add \"model_type\", e.g. \"llama\", or take the config.json the model is published with"};
  }
  for (const Family& family : config::families()) {
    if (family.model_type != type) continue;
    Architecture model = read_family(reader, family, root);
    if (!reader.problems.empty()) return reader.problems;
    model.name = outer.find("_name_or_path") != nullptr ? outer.text("_name_or_path", where) : where;
    if (model.name.empty()) model.name = where;
    model.source = fmt::format("{} (config.json, model_type {}{})", where, type, multimodal ? ", text model" : "");
    if (Problems problems = check_architecture(model, where); !problems.empty()) return problems;
    return model;
  }
  return unknown_type(type, reader.at("model_type"));
}

Outcome<Architecture> load_config_json(const std::string& path) {
  const Outcome<std::string> text = read_text_file(path, kMostWrittenBytes, "config.unreadable");
  if (!text) return text.problems();
  return read_config_json(*text, path);
}

std::vector<std::string> known_model_types() {
  std::vector<std::string> types;
  for (const Family& family : config::families()) types.emplace_back(family.model_type);
  return types;
}

}  // namespace cpfit
