#include "model/recipe/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "model/recipe/recipe_names.h"

namespace cpfit {

namespace {

/// One key of a recipe's text. `print` gives the canonical value; `shown` says whether it must be written at all, which is
/// when it neither is the default nor follows from another field.
struct Field {
  std::string_view key;
  std::string (*print)(const Recipe&);
  bool (*shown)(const Recipe&);
  Problems (*set)(Recipe&, std::string_view);
};

bool always(const Recipe&) { return true; }

template <auto member>
bool differs_from_default(const Recipe& recipe) {
  static const Recipe kDefault;
  return recipe.*member != kDefault.*member;
}

template <auto member>
std::string print_number(const Recipe& recipe) {
  return fmt::format("{}", recipe.*member);
}

template <auto member>
Problems set_number(Recipe& recipe, std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  if (error == std::errc::result_out_of_range || (whole && value > kMaxDegree)) {
    return {{"recipe.too_large", "", fmt::format("{} is larger than {}", text, kMaxDegree), "no cluster is that large"}};
  }
  if (!whole) {
    return {{"recipe.not_a_number", "", fmt::format("'{}' is not a whole number", text),
             text.find('=') == std::string_view::npos ? "write a whole number of at least 1" : "separate the keys by commas"}};
  }
  if (value < 1) return {{"recipe.not_positive", "", fmt::format("{} is below 1", value), "write a whole number of at least 1"}};
  recipe.*member = static_cast<std::int32_t>(value);
  return {};
}

template <auto member>
std::string print_name(const Recipe& recipe) {
  return std::string(name_of(recipe.*member));
}

template <class E, auto member>
Problems set_name(Recipe& recipe, std::string_view text) {
  const std::optional<E> value = value_named<E>(text);
  if (!value) return {unknown_word("recipe.unknown_value", "", text, names_of<E>())};
  recipe.*member = *value;
  return {};
}

template <auto member>
std::string print_flag(const Recipe& recipe) {
  return recipe.*member ? "true" : "false";
}

template <auto member>
Problems set_flag(Recipe& recipe, std::string_view text) {
  if (text != "true" && text != "false" && text != "on" && text != "off") {
    return {{"recipe.not_a_flag", "", fmt::format("'{}' is neither true nor false", text), "write true or false"}};
  }
  recipe.*member = text == "true" || text == "on";
  return {};
}

template <auto member>
std::string print_composite(const Recipe& recipe) {
  return to_text(recipe.*member);
}

template <auto member, auto parse>
Problems set_composite(Recipe& recipe, std::string_view text) {
  auto outcome = parse(text);
  if (!outcome) return outcome.problems();
  recipe.*member = std::move(outcome).value();
  return {};
}

Schedule schedule_of(std::int32_t vpp) { return vpp > 1 ? Schedule::kInterleaved : Schedule::kOneFOneB; }

bool a2a_degree_shown(const Recipe& recipe) { return recipe.a2a_degree != (recipe.cp_comm == CpComm::kA2a ? recipe.cp : 1); }

/// Over all data ranks, however it was written, is the default.
bool state_shards_shown(const Recipe& recipe) {
  return recipe.state_shards > 0 && recipe.state_shards != std::int64_t{recipe.dp} * recipe.cp;
}

std::string print_state_shards(const Recipe& recipe) {
  return state_shards_shown(recipe) ? fmt::format("{}", recipe.state_shards) : "all";
}

Problems set_state_shards(Recipe& recipe, std::string_view text) {
  if (text != "all") {
    Problems problems = set_number<&Recipe::state_shards>(recipe, text);
    for (Problem& problem : problems) problem.repair += ", or all";
    return problems;
  }
  recipe.state_shards = 0;
  return {};
}

std::string print_framework(const Recipe& recipe) { return recipe.framework; }

Problems set_framework(Recipe& recipe, std::string_view text) {
  if (text.empty() || text.find_first_of(" \t=") != std::string_view::npos) {
    return {{"recipe.framework", "", fmt::format("'{}' is not the name of a rule set", text),
             "write a name that `cpfit presets frameworks` lists"}};
  }
  recipe.framework = text;
  return {};
}

template <auto member>
constexpr Field number(std::string_view key) {
  return {key, print_number<member>, differs_from_default<member>, set_number<member>};
}
template <class E, auto member>
constexpr Field choice(std::string_view key) {
  return {key, print_name<member>, differs_from_default<member>, set_name<E, member>};
}
template <auto member>
constexpr Field flag(std::string_view key) {
  return {key, print_flag<member>, differs_from_default<member>, set_flag<member>};
}
template <auto member, auto parse>
constexpr Field composite(std::string_view key) {
  return {key, print_composite<member>, differs_from_default<member>, set_composite<member, parse>};
}

/// In the order of the struct, save that cp_comm and its degrees stand beside cp.
constexpr Field kFields[] = {
    {"tp", print_number<&Recipe::tp>, always, set_number<&Recipe::tp>},
    {"cp", print_number<&Recipe::cp>, always, set_number<&Recipe::cp>},
    choice<CpComm, &Recipe::cp_comm>("cp_comm"),
    {"a2a_degree", print_number<&Recipe::a2a_degree>, a2a_degree_shown, set_number<&Recipe::a2a_degree>},
    number<&Recipe::window>("window"),
    {"pp", print_number<&Recipe::pp>, always, set_number<&Recipe::pp>},
    {"dp", print_number<&Recipe::dp>, always, set_number<&Recipe::dp>},
    number<&Recipe::vpp>("vpp"),
    choice<ShardLayout, &Recipe::shard_layout>("shard_layout"),
    composite<&Recipe::stage_layout, parse_stage_layout>("stage_layout"),
    {"schedule", print_name<&Recipe::schedule>, [](const Recipe& recipe) { return recipe.schedule != schedule_of(recipe.vpp); },
     set_name<Schedule, &Recipe::schedule>},
    number<&Recipe::micro_batch>("micro_batch"),
    composite<&Recipe::recompute, parse_recompute>("recompute"),
    choice<StateSharding, &Recipe::state_sharding>("state_sharding"),
    {"state_shards", print_state_shards, state_shards_shown, set_state_shards},
    flag<&Recipe::sequence_parallel>("sequence_parallel"),
    choice<Precision, &Recipe::precision>("precision"),
    flag<&Recipe::overlap_tp>("overlap_tp"),
    flag<&Recipe::overlap_grad_reduce>("overlap_grad_reduce"),
    flag<&Recipe::overlap_param_gather>("overlap_param_gather"),
    flag<&Recipe::overlap_p2p>("overlap_p2p"),
    composite<&Recipe::rank_order, parse_rank_order>("rank_order"),
    {"framework", print_framework, differs_from_default<&Recipe::framework>, set_framework},
};

/// What people of other tools call our keys.
struct Synonym {
  std::string_view theirs;
  std::string_view ours;
};
constexpr Synonym kSynonyms[] = {{"mbs", "micro_batch"},      {"micro_batch_size", "micro_batch"}, {"sp", "sequence_parallel"},
                                 {"zero", "state_sharding"},  {"fsdp", "state_sharding"},          {"vp", "vpp"},
                                 {"order", "rank_order"},     {"layout", "stage_layout"},          {"ulysses", "a2a_degree"},
                                 {"cp_comm_type", "cp_comm"}, {"shard", "state_shards"},           {"hsdp", "state_shards"},
                                 {"dp_shard", "state_shards"}};

const Field* field_of(std::string_view key) {
  for (const Field& field : kFields) {
    if (field.key == key) return &field;
  }
  return nullptr;
}

Problem unknown_key(std::string_view key) {
  std::string near;
  for (const Synonym& synonym : kSynonyms) {
    if (synonym.theirs == key) near = synonym.ours;
  }
  if (near.empty()) near = nearest_name(std::string(key), recipe_keys());
  return {
      "recipe.unknown_key", std::string(key), fmt::format("a recipe has no key '{}'", key),
      near.empty() ? fmt::format("its keys are {}", fmt::join(recipe_keys(), ", ")) : fmt::format("did you mean '{}'?", near)};
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

/// True when tp * cp * pp * dp stays at or below kMaxWorld, without overflow on the way.
bool world_is_sane(const Recipe& recipe) {
  std::int64_t world = 1;
  for (const std::int64_t size : {recipe.tp, recipe.cp, recipe.pp, recipe.dp}) {
    world *= size;  // each step stays below kMaxWorld * kMaxDegree = 2^44
    if (world > kMaxWorld) return false;
  }
  return true;
}

}  // namespace

namespace {

template <class Wanted>
std::string text_of_fields(const Recipe& recipe, Wanted wanted) {
  std::string text;
  for (const Field& field : kFields) {
    if (!wanted(field)) continue;
    if (!text.empty()) text += ',';
    text += fmt::format("{}={}", field.key, field.print(recipe));
  }
  return text;
}

}  // namespace

std::string to_text(const Recipe& recipe) {
  return text_of_fields(recipe, [&](const Field& field) { return field.shown(recipe); });
}

std::string to_text(const Recipe& recipe, const Recipe& base) {
  const std::vector<std::string> differing = differences(recipe, base);
  return text_of_fields(recipe, [&](const Field& field) {
    return field.shown(recipe) || std::find(differing.begin(), differing.end(), field.key) != differing.end();
  });
}

std::string to_complete_text(const Recipe& recipe) {
  return text_of_fields(recipe, [](const Field&) { return true; });
}

std::vector<std::string> recipe_keys() {
  std::vector<std::string> keys;
  for (const Field& field : kFields) keys.emplace_back(field.key);
  return keys;
}

Problems set_recipe_field(Recipe& recipe, std::string_view key, std::string_view value) {
  const Field* field = field_of(key);
  if (field == nullptr) return {unknown_key(key)};
  Problems problems = field->set(recipe, value);
  for (Problem& problem : problems) problem.where = key;
  return problems;
}

Outcome<Recipe> parse_recipe(std::string_view text, const Recipe& base) {
  Recipe recipe = base;
  Problems problems;
  std::vector<std::string_view> named;
  const auto is_named = [&](std::string_view key) { return std::find(named.begin(), named.end(), key) != named.end(); };

  std::string_view rest = trimmed(text);
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const std::string_view entry = trimmed(rest.substr(0, comma));
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos) {
      problems.push_back({"recipe.syntax", "", fmt::format("'{}' is not KEY=VALUE", entry), "write tp=2,cp=4,pp=1,dp=2"});
    } else {
      const std::string_view key = trimmed(entry.substr(0, equals));
      if (is_named(key)) {
        problems.push_back(
            {"recipe.duplicate_key", std::string(key), fmt::format("'{}' is named twice", key), "keep one of them"});
      }
      named.push_back(key);
      for (Problem& problem : set_recipe_field(recipe, key, trimmed(entry.substr(equals + 1)))) {
        problems.push_back(std::move(problem));
      }
    }
    if (comma == std::string_view::npos) break;
    rest = trimmed(rest.substr(comma + 1));
    if (rest.empty()) problems.push_back({"recipe.syntax", "", "nothing follows the last comma", "remove the comma"});
  }
  if (!problems.empty()) return problems;

  if (is_named("cp") || is_named("cp_comm")) {
    if (!is_named("a2a_degree") && recipe.cp_comm != CpComm::kA2aP2p) {
      recipe.a2a_degree = recipe.cp_comm == CpComm::kA2a ? recipe.cp : 1;
    }
    if (!is_named("window") && recipe.cp_comm != CpComm::kDoubleRing) recipe.window = 1;
  }
  if (is_named("vpp") && !is_named("schedule")) recipe.schedule = schedule_of(recipe.vpp);
  if (!world_is_sane(recipe)) {
    return Problem{
        "recipe.too_large", "",
        fmt::format("tp {} * cp {} * pp {} * dp {} is more than {} GPUs", recipe.tp, recipe.cp, recipe.pp, recipe.dp, kMaxWorld),
        "lower a degree"};
  }
  return recipe;
}

std::vector<std::string> differences(const Recipe& a, const Recipe& b) {
  std::vector<std::string> keys;
  for (const Field& field : kFields) {
    const bool shown_a = field.shown(a);
    const bool shown_b = field.shown(b);
    if (!shown_a && !shown_b) continue;  // both the default, or both follow from another field
    if (shown_a != shown_b || field.print(a) != field.print(b)) keys.emplace_back(field.key);
  }
  return keys;
}

}  // namespace cpfit
