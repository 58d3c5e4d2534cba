#include "cli/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "cli/calibrate/groups.h"
#include "cli/terminal.h"
#include "cli/version.h"
#include "model/framework/rule_set.h"
#include "sim/plan/plan.h"

namespace cpfit::cli {

std::optional<Study> load_study(const std::string& path, const std::string& calibration, const std::string& database) {
  Outcome<Scenario> scenario = load_scenario(path);
  if (!scenario.ok()) {
    print_problems(scenario.problems());
    return std::nullopt;
  }
  if (calibration.empty()) return Study{std::move(scenario).value(), RateSet::defaults()};
  const Outcome<Calibration> chosen = choose_calibration(calibration, database);
  if (!chosen.ok()) {
    print_argument_problems("--calibration", chosen.problems());
    return std::nullopt;
  }
  Outcome<CalibratedRates> calibrated = calibrated_rates(*chosen, *scenario);
  if (!calibrated.ok()) {
    print_argument_problems("--calibration", calibrated.problems());
    return std::nullopt;
  }
  for (const std::string& warning : calibrated->use.warnings)
    fmt::print(stderr, "cpfit: calibration '{}': {}\n", chosen->name, warning);
  CalibratedRates rates = std::move(calibrated).value();
  return Study{std::move(scenario).value(), std::move(rates.rates), std::move(rates.use), *chosen};
}

void warn_of_groups(Study& study, const Recipe& recipe) {
  if (!study.chosen || !study.calibration) return;
  std::vector<std::string>& known = study.calibration->warnings;
  for (std::string& warning : group_warnings(*study.chosen, study.scenario, recipe)) {
    if (std::find(known.begin(), known.end(), warning) != known.end()) continue;
    fmt::print(stderr, "cpfit: calibration '{}': {}\n", study.chosen->name, warning);
    known.push_back(std::move(warning));
  }
}

Outcome<Recipe> parse_recipe_on(const std::string& text, const Recipe& base, std::int64_t gpus) {
  Outcome<Recipe> recipe = parse_recipe(text, base);
  Recipe other = base;
  other.dp = base.dp + 1;
  const Outcome<Recipe> over_other = parse_recipe(text, other);
  if (!recipe.ok() || !over_other.ok() || recipe->dp == over_other->dp) return recipe;  // dp is named
  const std::int64_t ranks = std::int64_t{recipe->tp} * recipe->cp * recipe->pp;
  if (ranks > 0 && gpus % ranks == 0 && gpus / ranks <= kMaxDegree) recipe.value().dp = static_cast<std::int32_t>(gpus / ranks);
  return recipe;
}

std::optional<ChosenRecipe> choose_recipe(const std::optional<std::string>& text, const Study& study) {
  const Recipe& base = study.scenario.base;
  if (text) {
    const Outcome<Recipe> named = parse_recipe_on(*text, base, study.scenario.cluster.gpus());
    if (named.ok() && find_framework(named->framework).ok()) return ChosenRecipe{*named};
    print_argument_problems("--recipe", named.ok() ? find_framework(named->framework).problems() : named.problems());
    return std::nullopt;
  }
  PlanOptions options;
  options.crossover = false;
  options.timeline = false;
  const Outcome<PlanResult> planned = plan(study.scenario, study.rates, options);
  if (!planned.ok()) {
    print_problems(planned.problems());
    return std::nullopt;
  }
  if (planned->ships) return ChosenRecipe{planned->ship.recipe};
  return ChosenRecipe{planned->candidates.empty() ? base : planned->candidates.front().recipe, false};
}

void print_argument_problems(const std::string& argument, Problems problems) {
  for (Problem& problem : problems) problem.where = argument + (problem.where.empty() ? "" : ": " + problem.where);
  print_problems(problems);
}

Provenance provenance_of(const Study& study) {
  return cpfit::provenance_of(study.scenario, study.rates, kVersion, study.calibration ? &*study.calibration : nullptr);
}

}  // namespace cpfit::cli
