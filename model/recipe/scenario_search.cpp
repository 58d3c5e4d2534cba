// The axes of a scenario's search, what the search leaves alone, and what a recipe must achieve.
#include "model/quantity/text.h"
#include "model/recipe/scenario_sections.h"

namespace cpfit::scenario {

namespace {

std::vector<std::int32_t> degrees(Section& section, std::string_view key) {
  return section.axis<std::int32_t>(key, [&](const toml::node& node, const std::string& name) -> std::optional<std::int32_t> {
    const std::optional<std::int64_t> value = whole_number(node, name, 1, kMaxDegree, section.reading());
    return value ? std::optional(static_cast<std::int32_t>(*value)) : std::nullopt;
  });
}

/// Data ranks that share one copy of the states: counts, or "all" (0).
std::vector<std::int32_t> shard_counts(Section& section, std::string_view key) {
  return section.axis<std::int32_t>(key, [&](const toml::node& node, const std::string& name) -> std::optional<std::int32_t> {
    if (node.value<std::string_view>() == "all") return 0;
    const std::optional<std::int64_t> value = whole_number(node, name, 1, kMaxDegree, section.reading());
    return value ? std::optional(static_cast<std::int32_t>(*value)) : std::nullopt;
  });
}

/// An axis of words, each read by `parse(std::string_view) -> Outcome<T>`.
template <class T, class Parse>
std::vector<T> words(Section& section, std::string_view key, Parse parse) {
  return section.axis<T>(key, [&](const toml::node& node, const std::string& name) -> std::optional<T> {
    const auto* text = node.as_string();
    if (text == nullptr) {
      section.reading().report(node, "scenario.wrong_type",
                               fmt::format("{} is {}, it must be a text in quotes", name, type_text(node)), "write it in quotes");
      return std::nullopt;
    }
    Outcome<T> value = parse(std::string_view(text->get()));
    if (value) return std::move(value).value();
    section.reading().adopt(node, name, value.problems());
    return std::nullopt;
  });
}

template <class E>
std::vector<E> choices(Section& section, std::string_view key) {
  return words<E>(section, key, [](std::string_view word) -> Outcome<E> {
    const std::optional<E> value = value_named<E>(word);
    if (value) return *value;
    return unknown_word("scenario.unknown_value", "", word, names_of<E>());
  });
}

template <class T>
void take_single(const std::vector<T>& axis, T& field) {
  if (axis.size() == 1) field = axis.front();
}

template <class T>
void take_first_offered(const std::vector<T>& offered, T& field) {
  if (offered.empty()) return;
  for (const T& value : offered) {
    if (value == field) return;
  }
  field = offered.front();
}

}  // namespace

SearchSpace read_search(const toml::table& table, Reading& reading) {
  Section section(table, "search", reading);
  SearchSpace search;
  search.tp = degrees(section, "tp");
  search.cp = degrees(section, "cp");
  search.pp = degrees(section, "pp");
  search.dp = degrees(section, "dp");
  search.vpp = degrees(section, "vpp");
  search.micro_batch = degrees(section, "micro_batch");
  search.cp_comm = choices<CpComm>(section, "cp_comm");
  search.a2a_degree = degrees(section, "a2a_degree");
  search.window = degrees(section, "window");
  search.recompute = words<Recompute>(section, "recompute", parse_recompute);
  search.state_sharding = choices<StateSharding>(section, "state_sharding");
  search.state_shards = shard_counts(section, "state_shards");
  search.shard_layout = choices<ShardLayout>(section, "shard_layout");
  search.stage_layout = words<StageLayout>(section, "stage_layout", parse_stage_layout);
  if (const toml::node* node = section.node("sequence_parallel"); node != nullptr && node->value<std::string>() != "auto") {
    search.sequence_parallel = section.flag("sequence_parallel");
  }
  section.finish();
  return search;
}

void read_recipe_section(const toml::table& table, Recipe& base, Reading& reading) {
  Section section(table, "recipe", reading);
  for (const std::string& key : recipe_keys()) {
    if (key == "precision" || key == "framework") continue;  // [training] decides them for every recipe
    const toml::node* node = section.node(key);
    if (node == nullptr) continue;
    const std::optional<std::string> value = scalar_text(*node);
    if (!value) {
      section.report(key, "scenario.wrong_type", fmt::format("recipe.{} is {}", key, type_text(*node)),
                     "write one value here; lists of values to try belong under [search]");
      continue;
    }
    section.adopt(key, set_recipe_field(base, key, *value));
  }
  section.finish();
}

Requirements read_requirements(const toml::table& table, const std::optional<Cluster>& cluster, Reading& reading) {
  Section section(table, "requirements", reading);
  Requirements requirements;
  // The margin may also be a size: a share of the device's capacity then.
  const toml::node* margin = section.node("memory_margin");
  const auto* margin_text = margin == nullptr ? nullptr : margin->as_string();
  const Outcome<Bytes> margin_bytes = margin_text == nullptr ? Outcome<Bytes>(Problems{}) : parse_bytes(margin_text->get());
  if (margin_bytes) {
    if (cluster) requirements.memory_margin_share = *margin_bytes / cluster->gpu.memory_usable;
    if (requirements.memory_margin_share >= 1) {
      section.report("memory_margin", "scenario.impossible",
                     fmt::format("requirements.memory_margin is {}, the GPU has {}", margin_text->get(),
                                 print_bytes(cluster->gpu.memory_usable)),
                     "write a smaller margin");
    }
  } else if (margin_text != nullptr && !parse_share(margin_text->get())) {
    section.report("memory_margin", "scenario.unit",
                   fmt::format("requirements.memory_margin is \"{}\", neither a share nor a size", margin_text->get()),
                   "write \"5 %\" or \"4 GiB\"");
  } else if (const std::optional<double> value = section.share("memory_margin")) {
    requirements.memory_margin_share = *value;
    if (*value >= 1) {
      section.report("memory_margin", "scenario.impossible", "requirements.memory_margin leaves no memory to use",
                     "write \"5 %\" or \"4 GiB\"");
    }
  }
  if (const auto value = section.share("exposed_budget")) requirements.exposed_budget_share = *value;
  if (const auto value = section.share("throughput_tolerance")) requirements.throughput_tolerance_share = *value;
  if (const auto value = section.number("min_tokens_per_second_per_gpu", 0.0, 1e9))
    requirements.min_tokens_per_second_per_gpu = *value;
  section.finish();
  return requirements;
}

void take_offered(const RuleSet& rules, Recipe& base) {
  take_first_offered(rules.cp_comms, base.cp_comm);
  take_first_offered(rules.shard_layouts, base.shard_layout);
  take_first_offered(rules.state_shardings, base.state_sharding);
  take_first_offered(rules.layout_kinds, base.stage_layout.kind);
}

void take_singles(const SearchSpace& search, Recipe& base) {
  take_single(search.tp, base.tp);
  take_single(search.cp, base.cp);
  take_single(search.pp, base.pp);
  take_single(search.dp, base.dp);
  take_single(search.vpp, base.vpp);
  take_single(search.micro_batch, base.micro_batch);
  take_single(search.cp_comm, base.cp_comm);
  take_single(search.a2a_degree, base.a2a_degree);
  take_single(search.window, base.window);
  take_single(search.recompute, base.recompute);
  take_single(search.state_sharding, base.state_sharding);
  take_single(search.state_shards, base.state_shards);
  take_single(search.shard_layout, base.shard_layout);
  take_single(search.stage_layout, base.stage_layout);
  if (search.sequence_parallel) base.sequence_parallel = *search.sequence_parallel;
}

void settle(std::int64_t gpus, bool dp_named, Recipe& base) {
  if (base.cp_comm == CpComm::kA2a) base.a2a_degree = base.cp;
  if (base.vpp > 1 && base.schedule == Schedule::kOneFOneB) base.schedule = Schedule::kInterleaved;
  const std::int64_t ranks = std::int64_t{base.tp} * base.cp * base.pp;
  if (!dp_named && ranks > 1 && gpus % ranks == 0) base.dp = static_cast<std::int32_t>(gpus / ranks);
}

}  // namespace cpfit::scenario
