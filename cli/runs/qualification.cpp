#include "cli/runs/qualification.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/calibrate/groups.h"
#include "cli/runs/bundle_build.h"
#include "cli/runs/bundle_evidence.h"
#include "cli/version.h"
#include "db/store/calibration_store.h"
#include "model/quantity/text.h"
#include "model/recipe/scenario_files.h"
#include "sim/plan/plan.h"
#include "sim/plan/study_rates.h"
#include "sim/plan/verdict.h"

namespace cpfit::cli {

namespace {

/// The study as it would be computed now.
struct Present {
  std::optional<Scenario> scenario;
  std::optional<Calibration> calibration;
  Problems trouble;
};

/// Of a run the file where it still is, else the text that was stored; a bundle's files travel with it.
Outcome<Scenario> scenario_now(const StoredStudy& study) {
  std::error_code ignored;
  if (!study.bundle && std::filesystem::is_regular_file(study.provenance.scenario_path, ignored))
    return load_scenario(study.provenance.scenario_path);
  if (study.scenario) return *study.scenario;
  return study.scenario_trouble;
}

/// The youngest of the same name, since that is what a plan would take now; else the one that was used.
std::optional<Calibration> calibration_now(const StoredStudy& study, const Store& store, Problems& trouble) {
  if (!study.calibrated) return std::nullopt;
  if (study.calibration_name == default_calibration().name) return default_calibration();
  if (Outcome<Calibration> named = find_calibration(store, study.calibration_name); named.ok()) return std::move(named).value();
  if (study.calibration) return study.calibration;
  trouble.push_back({"calibration.unknown", study.label,
                     fmt::format("its calibration '{}' ({}) is not in {}", study.calibration_name,
                                 study.calibration_id.substr(0, 12), store.path()),
                     "fit it into this database (cpfit calibrate fit --db)"});
  return std::nullopt;
}

Present present_of(const StoredStudy& study, const Store& store) {
  Present present;
  Outcome<Scenario> scenario = scenario_now(study);
  if (scenario.ok())
    present.scenario = std::move(scenario).value();
  else
    present.trouble = scenario.problems();
  present.calibration = calibration_now(study, store, present.trouble);
  return present;
}

std::string fit_sentence_of(const MovedRecipe& moved) {
  return fmt::format("the {} recipe was '{}' when it was stored and is '{}' now", moved.role, moved.fits_before, moved.fits_now);
}

/// One stored recipe now; nothing where it is no longer legal, with the reason.
struct Rerun {
  const BundledRecipe* stored = nullptr;
  std::optional<Candidate> now;
  std::string illegal;
};

Rerun run_again(const BundledRecipe& stored, const Scenario& scenario, const RateSet& rates) {
  Rerun rerun{&stored, std::nullopt, ""};
  const Outcome<Recipe> recipe = parse_recipe(stored.recipe, Recipe{});
  if (!recipe.ok()) {
    rerun.illegal = recipe.problems().front().message;
    return rerun;
  }
  const bool swept = stored.role == "out_of_memory" || stored.role == "slow";  // the others are of the run's own GPUs
  Outcome<Candidate> candidate = swept ? evaluate_control(scenario, rates, *recipe) : evaluate_recipe(scenario, rates, *recipe);
  if (candidate.ok())
    rerun.now = std::move(candidate).value();
  else
    rerun.illegal = candidate.problems().front().message;
  return rerun;
}

bool was_slower(const BundledRecipe& one, const BundledRecipe& other) {
  return figure_named(one.figures, "tokens_per_second_per_gpu") < figure_named(other.figures, "tokens_per_second_per_gpu");
}

/// What a control showed when it was stored and no longer shows.
void judge_control(const Rerun& control, const Rerun& ship, std::vector<std::string>& broken) {
  const BundledRecipe& stored = *control.stored;
  if (!control.now) {
    if (stored.role != "control")
      broken.push_back(fmt::format("its control '{}' is no longer legal: {}", stored.role, control.illegal));
    return;
  }
  // At risk is not fitting: its margin is what ships have and it has not.
  const bool died = stored.fits != name_of(Fit::kFits), dies = control.now->verdict.fit != Fit::kFits;
  if (died != dies) {
    broken.push_back(
        dies ? fmt::format("its control '{}' does not fit with its margin any more: {}", stored.role,
                           figures_sentence(*control.now))
             : fmt::format("its control '{}', which did not fit, fits now: {}", stored.role, figures_sentence(*control.now)));
    return;
  }
  if (dies || !ship.now || ship.stored == nullptr) return;
  const bool slower = control.now->tokens_per_second_per_gpu < ship.now->tokens_per_second_per_gpu;
  if (was_slower(stored, *ship.stored) != slower)
    broken.push_back(
        fmt::format("its control '{}' is {} now than the recipe it is compared with", stored.role, slower ? "slower" : "faster"));
}

/// What a plan said that shipped nothing: whether it still says so.
void judge_nothing_ships(const Scenario& scenario, const RateSet& rates, std::vector<std::string>& broken) {
  PlanOptions options;
  options.top = 1;
  options.crossover = options.timeline = false;
  const Outcome<PlanResult> planned = plan(scenario, rates, options);
  if (!planned.ok())
    broken.push_back(planned.problems().front().message);
  else if (planned->ships)
    broken.push_back("nothing shipped when it was stored; now this does: " + to_text(planned->ship.recipe));
}

void judge_again(const StoredStudy& study, const Scenario& scenario, const RateSet& rates, Qualification& found) {
  std::vector<Rerun> reruns;
  for (const BundledRecipe& stored : study.predicted) reruns.push_back(run_again(stored, scenario, rates));
  for (const Rerun& rerun : reruns) {
    if (!rerun.now) continue;
    found.rerun.push_back({rerun.stored->role, rerun.stored->recipe, rerun.stored->fits,
                           std::string(name_of(rerun.now->verdict.fit)),
                           changed_figures(rerun.stored->figures, figures_of(*rerun.now))});
  }
  const bool ships = !reruns.empty() && (reruns.front().stored->role == "ship" || reruns.front().stored->role == "chosen");
  Rerun nobody;
  const Rerun& ship = ships ? reruns.front() : nobody;
  if (ships && !ship.now) found.broken.push_back("its recipe is no longer legal: " + ship.illegal);
  if (ships && ship.now) {
    const Verdict verdict = judge_candidate(*ship.now, scenario.requirements);
    if (ship.stored->role == "ship" && !verdict.feasible())
      found.broken.push_back("its recipe no longer ships: " + verdict.sentence);
    // A recipe that a person chose need not be feasible; it must fit as it did.
    if (ship.stored->role == "chosen" && found.rerun.front().fits_before != found.rerun.front().fits_now)
      found.broken.push_back(fit_sentence_of(found.rerun.front()));
  }
  for (std::size_t i = ships ? 1 : 0; i < reruns.size(); ++i) judge_control(reruns[i], ship, found.broken);
  if (!ships) judge_nothing_ships(scenario, rates, found.broken);
}

/// A proof stands on fixtures: made again from their seeds they must still be those.
void judge_proof(const Bundle& bundle, Qualification& found) {
  const Outcome<Recipe> recipe = parse_recipe(bundle.predicted.recipe, Recipe{});
  if (!recipe.ok()) return;
  const EquivalenceReview review = review_equivalence(bundle.equivalence, recipe->cp, found.label);
  for (const Problem& problem : review.refused) found.broken.push_back(problem.message);
  found.warnings.insert(found.warnings.end(), review.notes.begin(), review.notes.end());
}

std::string stored_verdict(const StoredStudy& study) {
  if (study.bundle) return study.bundle->predicted.sentence;
  return study.plan ? study.plan->answer : std::string();
}

void warn_of_recipes(const StoredStudy& study, const Present& present, Qualification& found) {
  if (!present.calibration || study.predicted.empty()) return;
  const Outcome<Recipe> recipe = parse_recipe(study.predicted.front().recipe, Recipe{});
  if (!recipe.ok()) return;
  for (std::string& warning : group_warnings(*present.calibration, *present.scenario, *recipe))
    found.warnings.push_back(std::move(warning));
}

/// The rule set of the stored recipe; it may be another than the scenario's.
std::string framework_of(const StoredStudy& study, const Scenario& scenario) {
  if (study.predicted.empty()) return scenario.base.framework;
  const Outcome<Recipe> recipe = parse_recipe(study.predicted.front().recipe, scenario.base);
  return recipe.ok() ? recipe->framework : scenario.base.framework;
}

void add_problems(const Problems& problems, std::vector<std::string>& sentences) {
  for (const Problem& problem : problems) sentences.push_back(to_text(problem));
}

}  // namespace

std::string_view name_of(Standing standing) {
  switch (standing) {
    case Standing::kCurrent:
      return "current";
    case Standing::kHolds:
      return "holds";
    case Standing::kBroken:
      return "broken";
    case Standing::kUnknown:
      return "unknown";
    case Standing::kUnfinished:
      break;
  }
  return "unfinished";
}

Qualification requalify(const StoredStudy& study, const Store& store) {
  Qualification found;
  found.label = study.label;
  found.verdict = stored_verdict(study);
  if (study.status != "done") {
    found.standing = Standing::kUnfinished;
    return found;
  }
  const Present present = present_of(study, store);
  if (!present.trouble.empty()) {
    found.standing = Standing::kUnknown;
    add_problems(present.trouble, found.broken);
    return found;
  }
  const Calibration* calibration = present.calibration ? &*present.calibration : nullptr;
  const Outcome<RateSet> rates = rates_of(calibration, *present.scenario, &found.warnings);
  if (!rates.ok()) {
    found.standing = Standing::kUnknown;
    add_problems(rates.problems(), found.broken);
    return found;
  }
  std::optional<CalibrationUse> use;
  if (calibration != nullptr) use = CalibrationUse{calibration->id, calibration->name, calibration->assumed, {}, {}};
  const Provenance provenance = cpfit::provenance_of(*present.scenario, *rates, kVersion, use ? &*use : nullptr);
  const std::string framework = framework_of(study, *present.scenario);
  Inputs inputs_now = stored_inputs(provenance, store);
  inputs_now.text_of = [&, kept = inputs_now.text_of](const std::string& name,
                                                      const std::string& sha256) -> std::optional<std::string> {
    for (const ScenarioInput& input : present.scenario->inputs) {
      if (input.path == name) return input.text;
    }
    return kept(name, sha256);
  };
  found.changes = changed_inputs(stored_inputs(study.provenance, store, study.bundle ? &*study.bundle : nullptr), inputs_now,
                                 preset_names(*present.scenario, framework));
  warn_of_recipes(study, present, found);
  if (study.bundle) judge_proof(*study.bundle, found);
  if (std::ranges::none_of(found.changes, &InputChange::matters)) {
    if (!found.broken.empty()) found.standing = Standing::kBroken;
    return found;
  }
  judge_again(study, *present.scenario, *rates, found);
  found.standing = found.broken.empty() ? Standing::kHolds : Standing::kBroken;
  return found;
}

}  // namespace cpfit::cli
