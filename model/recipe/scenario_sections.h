// The sections of a scenario file, one reader each. Private to the scenario_*.cpp files.
#pragma once

#include <optional>

#include "model/framework/rule_set.h"
#include "model/recipe/scenario.h"
#include "model/recipe/scenario_reader.h"

namespace cpfit::scenario {

/// model = "preset", or a table with preset, config or explicit fields. Nothing when a problem was reported.
[[nodiscard]] std::optional<Architecture> read_model(const toml::node& node, Reading& reading);

/// cluster = "preset", or a table with preset or topology, and nodes or gpus.
[[nodiscard]] std::optional<Cluster> read_cluster(const toml::node& node, Reading& reading);

/// What [training] decides: the training itself, and the precision and rule set of every recipe.
struct TrainingChoice {
  Training training;
  Precision precision = Precision::kBf16;
  std::optional<RuleSet> rules;
};
[[nodiscard]] TrainingChoice read_training(const toml::table& table, Reading& reading);

/// [recipe]: the values of keys that neither the search nor a command line names. All keys but precision and framework.
void read_recipe_section(const toml::table& table, Recipe& base, Reading& reading);

[[nodiscard]] SearchSpace read_search(const toml::table& table, Reading& reading);
[[nodiscard]] Requirements read_requirements(const toml::table& table, const std::optional<Cluster>& cluster, Reading& reading);

/// The base recipe, weakest first: what the rule set offers where it lacks our default, then [recipe], then every axis of the
/// search that has one value.
void take_offered(const RuleSet& rules, Recipe& base);
void take_singles(const SearchSpace& search, Recipe& base);
/// What follows from the rest: the degree of a2a, interleaving, and dp = GPUs / (tp*cp*pp) when those are named and dp is not.
void settle(std::int64_t gpus, bool dp_named, Recipe& base);

}  // namespace cpfit::scenario
