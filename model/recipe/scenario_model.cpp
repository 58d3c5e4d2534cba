// The model of a scenario: a preset, a config.json, or explicit fields; fields also change a preset ("70B with 12 layers").
#include "model/recipe/scenario_sections.h"
#include "model/transformer/architecture_check.h"
#include "model/transformer/config_json.h"
#include "model/transformer/presets.h"

namespace cpfit {

// The words of architecture.h as a scenario writes them.
template <>
std::span<const NamedValue<Norm>> named_values() {
  static constexpr NamedValue<Norm> kNames[] = {{Norm::kRms, "rms"}, {Norm::kLayer, "layer"}};
  return kNames;
}
template <>
std::span<const NamedValue<Activation>> named_values() {
  static constexpr NamedValue<Activation> kNames[] = {{Activation::kSwiGlu, "swiglu"},
                                                      {Activation::kGeGlu, "geglu"},
                                                      {Activation::kGelu, "gelu"},
                                                      {Activation::kSquaredRelu, "squared_relu"}};
  return kNames;
}
template <>
std::span<const NamedValue<PositionKind>> named_values() {
  static constexpr NamedValue<PositionKind> kNames[] = {{PositionKind::kRope, "rope"},
                                                        {PositionKind::kLearned, "learned"},
                                                        {PositionKind::kAlibi, "alibi"},
                                                        {PositionKind::kNone, "none"}};
  return kNames;
}

namespace scenario {

namespace {

constexpr std::int64_t kMaxSize = std::int64_t{1} << 24;  // of any width or count: beyond it products leave 2^63

constexpr std::string_view kExpertKeys[] = {"num_experts", "num_local_experts", "n_routed_experts", "experts", "moe", "ep"};

void read_sizes(Section& section, Architecture& model) {
  const auto size = [&](std::string_view key, std::int64_t& field, std::int64_t at_least) {
    if (const std::optional<std::int64_t> value = section.integer(key, at_least, kMaxSize)) field = *value;
  };
  size("layers", model.layers, 1);
  size("hidden", model.hidden, 1);
  size("ffn_hidden", model.ffn_hidden, 1);
  size("heads", model.heads, 1);
  size("kv_heads", model.kv_heads, 1);
  size("head_dim", model.head_dim, 1);
  size("vocab", model.vocab, 1);
  size("max_positions", model.max_positions, 0);
  size("norms_per_layer", model.norms_per_layer, 1);
  size("window_period", model.window_period, 0);
  if (const std::optional<Tokens> window = section.tokens("sliding_window", kMaxSequence)) model.sliding_window = window->count();
}

void read_kinds(Section& section, Architecture& model) {
  const auto flag = [&](std::string_view key, bool& field) {
    if (const std::optional<bool> value = section.flag(key)) field = *value;
  };
  if (const auto value = section.choice<Norm>("norm")) model.norm = *value;
  if (const auto value = section.choice<Activation>("activation")) model.activation = *value;
  if (const auto value = section.choice<PositionKind>("position")) model.position = *value;
  flag("tied_embeddings", model.tied_embeddings);
  flag("qkv_bias", model.qkv_bias);
  flag("attention_output_bias", model.attention_output_bias);
  flag("mlp_bias", model.mlp_bias);
  flag("qk_norm", model.qk_norm);
  flag("qk_norm_all_heads", model.qk_norm_all_heads);
  if (const std::optional<double> value = section.number("hidden_dropout", 0.0, 1.0)) model.hidden_dropout = *value;
  if (const std::optional<double> value = section.number("attention_dropout", 0.0, 1.0)) model.attention_dropout = *value;
}

Outcome<Architecture> config_of(const Reading& reading, const std::string& file) {
  if (reading.files == nullptr) return load_config_json(file);
  const Outcome<std::string> text = reading.given(file);
  if (!text) return text.problems();
  return read_config_json(*text, file);
}

/// The architecture the fields start from: a preset, a config.json, or nothing.
std::optional<Architecture> read_origin(Section& section) {
  const std::optional<std::string> preset = section.text("preset");
  const std::optional<std::string> config = section.text("config");
  if (preset && config) {
    section.report("config", "scenario.contradiction", "model names a preset and a config.json", "keep one of them");
    return std::nullopt;
  }
  if (preset) {
    const Outcome<Architecture> found = find_model(*preset);
    if (found) return *found;
    section.adopt("preset", found.problems());
    return std::nullopt;
  }
  if (config) {
    const std::string file = section.reading().resolved(*config);
    Outcome<Architecture> found = config_of(section.reading(), file);
    if (found) {
      section.reading().remember(file);
      return *found;
    }
    section.adopt_file("config", found.problems());
    return std::nullopt;
  }
  Architecture model;
  model.name = "explicit";
  model.source = section.reading().path;
  return model;
}

}  // namespace

std::optional<Architecture> read_model(const toml::node& node, Reading& reading) {
  if (const auto* name = node.as_string()) {
    const Outcome<Architecture> found = find_model(name->get());
    if (found) return *found;
    reading.adopt(node, "model", found.problems());
    return std::nullopt;
  }
  const toml::table* table = node.as_table();
  if (table == nullptr) {
    reading.report(node, "scenario.wrong_type", fmt::format("model is {}", type_text(node)),
                   "write model = \"llama3-8b\", model = {config = \"config.json\"} or a [model] table");
    return std::nullopt;
  }
  const std::size_t before = reading.problems.size();
  Section section(*table, "model", reading);
  for (const std::string_view key : kExpertKeys) {
    if (const toml::node* experts = table->get(key)) {
      reading.report(*experts, "scenario.mixture_of_experts", fmt::format("model.{} describes a mixture of experts", key),
                     "only dense models are modelled for now");
      return std::nullopt;
    }
  }
  std::optional<Architecture> model = read_origin(section);
  const bool from_fields = table->get("preset") == nullptr && table->get("config") == nullptr;
  Architecture ignored;
  Architecture& target = model ? *model : ignored;
  if (const std::optional<std::string> name = section.text("name")) target.name = *name;
  read_sizes(section, target);
  read_kinds(section, target);
  section.finish();
  if (!model || reading.problems.size() > before) return std::nullopt;

  if (from_fields) {  // what follows from the rest when it is not said
    if (target.kv_heads == 0) target.kv_heads = target.heads;
    if (target.head_dim == 0 && target.heads > 0) target.head_dim = target.hidden / target.heads;
  }
  const Problems unsound = check_architecture(target, "model");
  for (const Problem& problem : unsound) {
    reading.problems.push_back(
        {problem.code, reading.place(node), fmt::format("{}: {}", problem.where, problem.message), problem.repair});
  }
  return unsound.empty() ? model : std::nullopt;
}

}  // namespace scenario

}  // namespace cpfit
