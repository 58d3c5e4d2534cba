#include "model/transformer/presets.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "model/presets/embedded.h"
#include "model/transformer/architecture_check.h"

namespace cpfit {

namespace {

struct IntegerKey {
  std::string_view name;
  std::int64_t Architecture::* field;
};
constexpr IntegerKey kIntegers[] = {
    {"layers", &Architecture::layers},
    {"hidden", &Architecture::hidden},
    {"ffn_hidden", &Architecture::ffn_hidden},
    {"heads", &Architecture::heads},
    {"kv_heads", &Architecture::kv_heads},
    {"head_dim", &Architecture::head_dim},
    {"vocab", &Architecture::vocab},
    {"max_positions", &Architecture::max_positions},
    {"norms_per_layer", &Architecture::norms_per_layer},
    {"sliding_window", &Architecture::sliding_window},
    {"window_period", &Architecture::window_period},
};

struct FlagKey {
  std::string_view name;
  bool Architecture::* field;
};
constexpr FlagKey kFlags[] = {
    {"tied_embeddings", &Architecture::tied_embeddings},
    {"qkv_bias", &Architecture::qkv_bias},
    {"attention_output_bias", &Architecture::attention_output_bias},
    {"mlp_bias", &Architecture::mlp_bias},
    {"qk_norm", &Architecture::qk_norm},
    {"qk_norm_all_heads", &Architecture::qk_norm_all_heads},
};

template <class E>
struct Word {
  std::string_view name;
  E value;
};
constexpr Word<Norm> kNorms[] = {{"rms", Norm::kRms}, {"layer", Norm::kLayer}};
constexpr Word<Activation> kActivations[] = {{"swiglu", Activation::kSwiGlu},
                                             {"geglu", Activation::kGeGlu},
                                             {"gelu", Activation::kGelu},
                                             {"squared_relu", Activation::kSquaredRelu}};
constexpr Word<PositionKind> kPositions[] = {{"rope", PositionKind::kRope},
                                             {"learned", PositionKind::kLearned},
                                             {"alibi", PositionKind::kAlibi},
                                             {"none", PositionKind::kNone}};

template <class E, std::size_t N>
bool read_word(const toml::node& node, const Word<E> (&words)[N], E& value) {
  const auto text = node.value_exact<std::string>();
  for (const Word<E>& word : words) {
    if (text && *text == word.name) {
      value = word.value;
      return true;
    }
  }
  return false;
}

/// Stores one key; false when the key is unknown or its value has the wrong type.
bool read_key(std::string_view key, const toml::node& node, ModelPreset& preset) {
  Architecture& model = preset.architecture;
  const auto store = [](const auto& value, auto& target) {
    if (value) target = *value;
    return value.has_value();
  };
  for (const IntegerKey& known : kIntegers) {
    if (known.name == key) return store(node.value_exact<std::int64_t>(), model.*known.field);
  }
  for (const FlagKey& known : kFlags) {
    if (known.name == key) return store(node.value_exact<bool>(), model.*known.field);
  }
  if (key == "name") return store(node.value_exact<std::string>(), model.name);
  if (key == "source") return store(node.value_exact<std::string>(), model.source);
  if (key == "norm") return read_word(node, kNorms, model.norm);
  if (key == "activation") return read_word(node, kActivations, model.activation);
  if (key == "position") return read_word(node, kPositions, model.position);
  if (key == "hidden_dropout") return store(node.value_exact<double>(), model.hidden_dropout);
  if (key == "attention_dropout") return store(node.value_exact<double>(), model.attention_dropout);
  if (key == "published_parameters") return store(node.value_exact<std::int64_t>(), preset.published_parameters);
  if (key == "published_unit") return store(node.value_exact<std::int64_t>(), preset.published_unit);
  if (key == "published_other_parameters") return store(node.value_exact<std::int64_t>(), preset.published_other_parameters);
  if (key != "aliases" || !node.is_array()) return false;
  for (const toml::node& alias : *node.as_array()) {
    const auto text = alias.value_exact<std::string>();
    if (!text) return false;
    preset.aliases.push_back(*text);
  }
  return true;
}

/// Words of a published name that do not change the architecture.
constexpr std::string_view kIdleWords[] = {"instruct", "base", "chat", "hf", "it", "pt", "meta", "text"};

}  // namespace

Outcome<std::vector<ModelPreset>> parse_model_presets(std::string_view text) {
  toml::table root;
  try {
    root = toml::parse(text, std::string_view("models.toml"));
  } catch (const toml::parse_error& error) {
    return Problem{"presets.syntax", fmt::format("models.toml:{}:{}", error.source().begin.line, error.source().begin.column),
                   std::string(error.description()), "repair the file at this place"};
  }
  std::vector<ModelPreset> presets;
  Problems problems;
  const toml::array* rows = root["model"].as_array();
  if (rows == nullptr) return Problem{"presets.missing", "models.toml", "there is no [[model]] table", "add one per model"};
  for (const toml::node& row : *rows) {
    const std::string where = fmt::format("models.toml:{}", row.source().begin.line);
    const toml::table* table = row.as_table();
    if (table == nullptr) return Problem{"presets.type", where, "model must be a table", "write [[model]]"};
    ModelPreset preset;
    for (const auto& [key, node] : *table) {
      if (read_key(key.str(), node, preset)) continue;
      problems.push_back({"presets.key", fmt::format("models.toml:{}", node.source().begin.line),
                          fmt::format("{} is not a key of a model, or its value has the wrong type", key.str()),
                          "use the keys of model/transformer/architecture.h"});
    }
    if (preset.architecture.name.empty() || preset.architecture.source.empty()) {
      problems.push_back({"presets.missing", where, "a model needs a name and a source", "add the missing one"});
    }
    for (Problem& problem : check_architecture(preset.architecture, where)) problems.push_back(std::move(problem));
    presets.push_back(std::move(preset));
  }
  if (!problems.empty()) return problems;
  return presets;
}

std::vector<ModelPreset> model_preset_rows() {
  Outcome<std::vector<ModelPreset>> presets = parse_model_presets(embedded_file("presets/models.toml"));
  if (!presets) {
    for (const Problem& problem : presets.problems())
      std::fprintf(stderr, "cpfit: internal error: %s\n", to_text(problem).c_str());
    std::abort();
  }
  return std::move(presets).value();
}

std::vector<Architecture> model_presets() {
  std::vector<Architecture> models;
  for (ModelPreset& preset : model_preset_rows()) models.push_back(std::move(preset.architecture));
  return models;
}

std::string normal_model_name(std::string_view name) {
  if (const auto slash = name.rfind('/'); slash != std::string_view::npos) name.remove_prefix(slash + 1);
  std::string normal, word;
  const auto finish_word = [&] {
    bool idle = false;
    for (const std::string_view known : kIdleWords) idle = idle || word == known;
    if (!idle) normal += word;
    word.clear();
  };
  for (const char c : name) {
    if (c == '-' || c == '_' || c == ' ') {
      finish_word();
    } else {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  finish_word();
  return normal;
}

Outcome<Architecture> find_model(const std::string& name) {
  const std::string wanted = normal_model_name(name);
  std::vector<std::string> normals, names;
  for (ModelPreset& preset : model_preset_rows()) {
    std::vector<std::string> known = preset.aliases;
    known.push_back(preset.architecture.name);
    for (const std::string& each : known) {
      if (normal_model_name(each) == wanted) return std::move(preset.architecture);
      normals.push_back(normal_model_name(each));
      names.push_back(each);
    }
  }
  const std::string nearest = nearest_name(wanted, normals);
  std::string repair = "list the names with: cpfit presets models; or give a config.json";
  for (std::size_t i = 0; i < normals.size() && !nearest.empty(); ++i) {
    if (normals[i] == nearest) {
      repair = fmt::format("did you mean \"{}\"? Otherwise {}", names[i], repair);
      break;
    }
  }
  return Problem{"model.unknown", name, fmt::format("there is no model preset named \"{}\"", name), repair};
}

}  // namespace cpfit
