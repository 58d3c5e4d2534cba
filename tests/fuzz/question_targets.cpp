// What a person writes: scenarios, recipes, quantities, a model's config.json.
#include <algorithm>

#include "model/quantity/text.h"
#include "model/recipe/scenario.h"
#include "model/recipe/stage_layout.h"
#include "model/transformer/config_json.h"
#include "model/transformer/parameters.h"
#include "sim/plan/workbench.h"
#include "tests/fuzz/targets.h"

namespace cpfit::fuzz {

namespace {

/// Files that a scenario names are looked for where there are none.
constexpr const char* kPlace = "/nowhere/fuzz.toml";

/// A thousand hosts and more are the same code, and take seconds.
bool asks_for_thousands(std::string_view text) {
  for (const std::string_view key : {"nodes", "gpus"}) {
    for (std::size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
      int digits = 0;
      for (const char c : text.substr(at, 32)) {
        digits = (c >= '0' && c <= '9') || c == '_' || c == 'x' || c == 'k' || c == 'M' ? digits + 1 : 0;
        if (digits >= 4) return true;
      }
    }
  }
  return false;
}

}  // namespace

void scenario(std::string_view bytes) {
  if (asks_for_thousands(bytes)) return;
  const Outcome<Scenario> read = read_scenario(std::string(bytes), kPlace);
  must(read.ok() != !read.problems().empty(), "a scenario or problems");
}

void study(std::string_view bytes) {
  if (asks_for_thousands(bytes)) return;
  static const RateSet rates = RateSet::defaults();
  const Outcome<Scenario> read = read_scenario(std::string(bytes), kPlace);
  if (!read.ok()) return;
  if (read->cluster.nodes > 512) return;
  Outcome<Workbench> bench = Workbench::build(*read, rates);
  if (!bench.ok()) return;
  Recipe recipe = read->base;
  for (const std::int32_t cp : {1, 2, 4, 8}) {
    for (const std::int32_t tp : {1, 8}) {
      recipe.cp = cp;
      recipe.tp = tp;
      recipe.dp = 1;
      recipe.dp = static_cast<std::int32_t>(std::max<std::int64_t>(1, read->cluster.gpus() / recipe.world()));
      const Outcome<Candidate> candidate = bench.value().evaluate(read->training, recipe);
      must(candidate.ok() != !candidate.problems().empty(), "a candidate or reasons");
    }
  }
}

void recipe(std::string_view bytes) {
  const Recipe base;
  const Outcome<Recipe> read = parse_recipe(bytes, base);
  if (read.ok()) {
    const Outcome<Recipe> again = parse_recipe(to_complete_text(*read), base);
    must(again.ok() && *again == *read, "a recipe comes back from its text");
    Architecture model;
    model.layers = 32;
    model.hidden = 4096;
    const bool resolves = layout_resolves(model, *read);
    must(resolves == resolve_layout(model, *read).ok() && resolves == layout_problems(model, *read).empty(), "one layout");
  }
  (void)parse_stage_layout(bytes);
  (void)parse_recompute(bytes);
  (void)parse_rank_order(bytes);
}

void quantity(std::string_view bytes) {
  if (const auto tokens = parse_tokens(bytes)) {
    const auto again = parse_tokens(print_tokens(*tokens));
    must(again.ok() && *again == *tokens, "tokens come back from their text");
  }
  if (const auto size = parse_bytes(bytes)) (void)print_bytes(*size);
  if (const auto rate = parse_rate(bytes)) (void)print_rate(*rate);
  if (const auto time = parse_time(bytes)) (void)print_time(*time);
  if (const auto share = parse_share(bytes)) must(*share >= 0 && *share <= 1, "a share is from 0 to 1");
}

void config_json(std::string_view bytes) {
  const Outcome<Architecture> read = read_config_json(bytes, "config.json");
  if (!read.ok()) return;
  must(count_parameters(*read).total() > 0, "a model has parameters");
}

}  // namespace cpfit::fuzz
