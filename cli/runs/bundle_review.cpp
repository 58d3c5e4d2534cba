#include "cli/runs/bundle_review.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/calibrate/groups.h"
#include "cli/runs/bundle_build.h"
#include "cli/runs/bundle_evidence.h"
#include "cli/runs/review_text.h"
#include "cli/runs/stored_study.h"
#include "cli/version.h"
#include "model/presets/embedded.h"
#include "model/quantity/counted.h"
#include "model/quantity/hash.h"

namespace cpfit::cli {

namespace {

constexpr const char* kRepair = "take it from where it was exported, or export it again: cpfit runs export";
constexpr std::int64_t kGrowth = 64;  // of a control's cluster over the scenario's; the controlled sweep stays far below it

/// Hashes that the bundle names for texts which it carries itself.
Problems check_inputs(const Bundle& bundle, const std::string& where) {
  Problems wrong;
  for (const auto& [name, hash] : bundle.inputs) {
    std::string found;
    switch (input_kind(name)) {
      case InputKind::kScenario:
        found = sha256_hex(bundle.scenario.text);
        break;
      case InputKind::kFile: {
        const auto file = std::ranges::find(bundle.files, name, &BundledFile::path);
        found = file == bundle.files.end() ? std::string() : sha256_hex(file->text);
        break;
      }
      case InputKind::kCalibration:
        found = bundle.calibration_id;
        break;
      case InputKind::kPreset:
        continue;
    }
    if (found != hash)
      wrong.push_back(
          {"bundle.input", where, fmt::format("its {} is not the one that the run was computed from", name), kRepair});
  }
  return wrong;
}

/// Presets and version against this cpfit's.
std::vector<std::string> changed_tool(const Bundle& bundle) {
  std::vector<std::string> changed;
  if (bundle.tool_version != kVersion) changed.push_back(fmt::format("cpfit: {} then, {} now", bundle.tool_version, kVersion));
  for (const EmbeddedFile& file : embedded_files()) {
    const auto then = std::ranges::find(bundle.inputs, file.name, &NamedTexts::value_type::first);
    const std::string hash = sha256_hex(file.text);
    const std::string before = then == bundle.inputs.end() ? std::string("none") : then->second;
    if (before != hash)
      changed.push_back(fmt::format("{}: {} then, {} now", file.name, before.substr(0, 12), hash.substr(0, 12)));
  }
  return changed;
}

Outcome<std::vector<std::pair<std::string, Recipe>>> controls_of(const Bundle& bundle, std::int64_t gpus,
                                                                 const std::string& where) {
  std::vector<std::pair<std::string, Recipe>> controls;
  for (const BundledRecipe& control : bundle.controls) {
    const Outcome<Recipe> recipe = parse_recipe(control.recipe, Recipe{});
    if (!recipe.ok()) return recipe.problems();
    if (recipe->world() != control.gpus || control.gpus > kGrowth * gpus) {
      return Problem{"bundle.control", where,
                     fmt::format("its control '{}' names {}, its recipe has {}", control.role, counted(control.gpus, "GPU"),
                                 recipe->world()),
                     kRepair};
    }
    controls.emplace_back(control.role, *recipe);
  }
  return controls;
}

void compare_recipes(const BundledRecipe& before, const BundledRecipe& now, BundleReview& review) {
  review.figures += static_cast<std::int64_t>(now.figures.size());
  MovedRecipe moved{now.role, now.recipe, before.fits, now.fits, changed_figures(before.figures, now.figures)};
  if (!moved.figures.empty() || before.fits != now.fits) review.moved.push_back(std::move(moved));
}

void compare_links(const std::vector<LinkLoad>& before, const std::vector<LinkLoad>& now, BundleReview& review) {
  review.figures += 2 * static_cast<std::int64_t>(now.size());
  if (before != now) review.differs.emplace_back("links");
}

/// The first rank that lies elsewhere than its recipe says.
std::string misplaced(const std::vector<BundledRank>& given, const std::vector<BundledRank>& right) {
  if (given.size() != right.size())
    return fmt::format("it places {}, its recipe has {}", counted(given.size(), "rank"), right.size());
  for (std::size_t i = 0; i < right.size(); ++i) {
    const BundledRank &a = given[i], &b = right[i];
    if (a == b) continue;
    return fmt::format(
        "rank {} stands at tp {} cp {} dp {} pp {}, node {} GPU {}; its recipe puts rank {} at tp {} cp {} dp {} pp "
        "{}, node {} GPU {}",
        a.rank, a.tp, a.cp, a.dp, a.pp, a.node, a.gpu, b.rank, b.tp, b.cp, b.dp, b.pp, b.node, b.gpu);
  }
  return "";
}

void compare_parts(const Bundle& bundle, const Bundle& now, BundleReview& review) {
  const auto part = [&](const char* name, const auto& a, const auto& b) {
    if (a != b) review.differs.emplace_back(name);
  };
  part("model", bundle.model, now.model);
  part("sequence", bundle.sequence, now.sequence);
  part("implementation", bundle.implementation, now.implementation);
  part("cluster", bundle.cluster, now.cluster);
  part("topology", bundle.topology, now.topology);
  part("preset entries", bundle.entries, now.entries);
  part("placement", bundle.placement, now.placement);
  part("equivalence: what must be proved",
       std::tie(bundle.equivalence.method, bundle.equivalence.layout, bundle.equivalence.dtype, bundle.equivalence.masks),
       std::tie(now.equivalence.method, now.equivalence.layout, now.equivalence.dtype, now.equivalence.masks));
  if (!review.same_tool) return;  // the rest names versions
  part("software", bundle.software, now.software);
  part("rates version", bundle.rates_version, now.rates_version);
  if (bundle.predicted.sentence != now.predicted.sentence) review.differs.emplace_back("sentence of the recipe");
  for (std::size_t i = 0; i < std::min(bundle.controls.size(), now.controls.size()); ++i) {
    if (bundle.controls[i].sentence != now.controls[i].sentence) review.differs.emplace_back("sentence of a control");
  }
}

/// With the same cpfit nothing may come out otherwise: somebody wrote other figures.
void refuse_differences(const std::string& where, BundleReview& review) {
  for (const MovedRecipe& moved : review.moved) {
    std::string what = fmt::format("'{}' where this cpfit says '{}'", moved.fits_before, moved.fits_now);
    if (!moved.figures.empty()) {
      const auto [before, after] = printed_pair(moved.figures.front());
      what = fmt::format("{} is {} in it, this cpfit, of the same version and presets, computes {}",
                         figure_label(moved.figures.front().name), before, after);
    }
    review.refused.push_back({"bundle.figures", where, fmt::format("of its recipe '{}', {}", moved.role, what), kRepair});
  }
  for (const std::string& part : review.differs)
    review.refused.push_back(
        {"bundle.part", where, fmt::format("its {} is not what its scenario and recipe give", part), kRepair});
}

void place(Problems found, const std::string& where, Problems& refused) {
  for (Problem& problem : found) {
    if (!problem.where.starts_with(where)) problem.where = where + (problem.where.empty() ? "" : ": " + problem.where);
    refused.push_back(std::move(problem));
  }
}

}  // namespace

BundleReview review_bundle(const Bundle& bundle, const std::string& where) {
  BundleReview review;
  review.changed = changed_tool(bundle);
  review.same_tool = review.changed.empty();
  review.refused = check_inputs(bundle, where);
  const Outcome<StoredStudy> study = study_of(bundle, where);
  if (!study.ok()) place(study.problems(), where, review.refused);
  if (study.ok() && !study->scenario) place(study->scenario_trouble, where, review.refused);
  if (!review.refused.empty()) return review;

  const Scenario& scenario = *study->scenario;
  const Outcome<Recipe> recipe = parse_recipe(bundle.predicted.recipe, Recipe{});
  const auto controls = controls_of(bundle, scenario.cluster.gpus(), where);
  const Outcome<RateSet> rates = rates_of(&*study->calibration, scenario, &review.notes);
  for (const Problems& found : {recipe.ok() ? Problems{} : recipe.problems(), controls.ok() ? Problems{} : controls.problems(),
                                rates.ok() ? Problems{} : rates.problems()}) {
    place(found, where, review.refused);
  }
  if (!review.refused.empty()) return review;
  const Outcome<Bundle> now = make_bundle({scenario, *rates, *study->calibration, kVersion, bundle.predicted.role, *recipe,
                                           *controls, bundle.missing_controls, bundle.equivalence, bundle.inputs});
  if (!now.ok()) {
    place(now.problems(), where, review.refused);
    return review;
  }
  if (const std::string wrong = misplaced(bundle.mesh, now->mesh); !wrong.empty())
    review.refused.push_back({"bundle.mesh", where, wrong, kRepair});
  for (std::string& warning : group_warnings(*study->calibration, scenario, *recipe)) review.notes.push_back(std::move(warning));
  EquivalenceReview equivalence = review_equivalence(bundle.equivalence, recipe->cp, where);
  place(std::move(equivalence.refused), "", review.refused);
  review.cases = equivalence.cases;
  review.known_cases = equivalence.known;
  for (std::string& note : equivalence.notes) review.notes.push_back(std::move(note));
  compare_recipes(bundle.predicted, now->predicted, review);
  for (std::size_t i = 0; i < now->controls.size(); ++i) compare_recipes(bundle.controls[i], now->controls[i], review);
  compare_links(bundle.links, now->links, review);
  compare_parts(bundle, *now, review);
  if (review.same_tool) refuse_differences(where, review);
  return review;
}

}  // namespace cpfit::cli
