// cpfit runs diff: two stored recipes, what differs in their inputs and, where they answer the same question, in their figures.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/runs/bundle_build.h"
#include "cli/runs/changes.h"
#include "cli/runs/commands.h"
#include "cli/runs/review_text.h"
#include "cli/runs/stored_study.h"
#include "cli/terminal.h"
#include "model/cluster/topology_text.h"
#include "model/quantity/counted.h"
#include "sim/screen/real_tokens.h"

namespace cpfit::cli {

namespace {

struct DiffArguments : RunsArguments {
  std::string a, b;
};

/// One key of a recipe that differs.
struct RecipeDifference {
  std::string key, a, b;
};

struct StudyDifference {
  std::vector<InputChange> inputs;
  std::vector<RecipeDifference> recipe;
  std::vector<std::string> unequal;  // why their figures are no comparison; empty: they are one
  std::vector<MovedRecipe> figures;  // by role
  std::vector<std::string> one_sided;
};

std::string value_in(const std::string& complete_text, const std::string& key) {
  const std::string text = "," + complete_text + ",";
  const std::size_t at = text.find("," + key + "=");
  if (at == std::string::npos) return "";
  const std::size_t begin = at + key.size() + 2;
  return text.substr(begin, text.find(',', begin) - begin);
}

const BundledRecipe* with_role(const StoredStudy& study, const std::string& role) {
  const auto found = std::ranges::find(study.predicted, role, &BundledRecipe::role);
  return found == study.predicted.end() ? nullptr : &*found;
}

/// What ships, or what was chosen in its place.
const BundledRecipe* main_recipe(const StoredStudy& study) {
  const BundledRecipe* ship = with_role(study, "ship");
  return ship != nullptr ? ship : with_role(study, "chosen");
}

bool same_model(Architecture a, Architecture b) {
  a.name = b.name = a.source = b.source = "";  // where it was read, not what it is
  return a == b;
}

bool same_cluster(const Cluster& a, const Cluster& b) {
  return a.gpu.name == b.gpu.name && a.gpu.memory_usable == b.gpu.memory_usable && a.nodes == b.nodes && a.gpus() == b.gpus() &&
         a.scale_up_domain == b.scale_up_domain && print_links(link_table(*a.topology)) == print_links(link_table(*b.topology));
}

std::string cluster_words(const Cluster& cluster) {
  return fmt::format("{} {} on {} of {}", cluster.gpus(), cluster.gpu.name, counted(cluster.nodes, "node"), cluster.name);
}

/// As the desktop program's comparison: what an equal comparison holds.
std::vector<std::string> unequal_reasons(const StoredStudy& a, const StoredStudy& b) {
  std::vector<std::string> reasons;
  for (const StoredStudy* side : {&a, &b}) {
    if (!side->scenario)
      reasons.push_back(
          fmt::format("the scenario of {} cannot be read again: {}", side->label, to_text(side->scenario_trouble.front())));
    if (side->status != "done") reasons.push_back(fmt::format("{} is not finished", side->label));
  }
  if (!reasons.empty()) return reasons;
  const Scenario &sa = *a.scenario, &sb = *b.scenario;
  if (!same_model(sa.model, sb.model))
    reasons.push_back(fmt::format("the model differs: {} against {}", sa.model.name, sb.model.name));
  const double ta = real_tokens_per_step(sa.training), tb = real_tokens_per_step(sb.training);
  if (ta != tb)
    reasons.push_back(fmt::format("the effective token batch differs: {:.0f} against {:.0f} tokens per step", ta, tb));
  const BundledRecipe *ra = main_recipe(a), *rb = main_recipe(b);
  if (ra != nullptr && rb != nullptr && value_in(ra->recipe, "recompute") != value_in(rb->recipe, "recompute"))
    reasons.push_back(fmt::format("recompute differs: {} against {}; what it frees or costs is not a gain of CP",
                                  value_in(ra->recipe, "recompute"), value_in(rb->recipe, "recompute")));
  if (!same_cluster(sa.cluster, sb.cluster))
    reasons.push_back(fmt::format("the hardware differs: {} against {}", cluster_words(sa.cluster), cluster_words(sb.cluster)));
  return reasons;
}

std::vector<RecipeDifference> recipe_differences(const BundledRecipe* a, const BundledRecipe* b) {
  std::vector<RecipeDifference> found;
  if (a == nullptr || b == nullptr) return found;
  for (const std::string& key : recipe_keys()) {
    const std::string left = value_in(a->recipe, key), right = value_in(b->recipe, key);
    if (left != right) found.push_back({key, left, right});
  }
  return found;
}

void compare_figures(const std::string& role, const BundledRecipe* a, const BundledRecipe* b, const StoredStudy& left,
                     const StoredStudy& right, StudyDifference& found) {
  if (a == nullptr && b == nullptr) return;
  if (a == nullptr || b == nullptr) {
    if (left.bundle.has_value() != right.bundle.has_value()) return;  // a run and a bundle keep other controls
    found.one_sided.push_back(fmt::format("only {} has a '{}' recipe", a != nullptr ? left.label : right.label, role));
    return;
  }
  found.figures.push_back({role, b->recipe, a->fits, b->fits, changed_figures(a->figures, b->figures)});
}

StudyDifference difference_of(const StoredStudy& a, const StoredStudy& b, const Store& store) {
  StudyDifference found;
  std::set<std::string> names;
  for (const StoredStudy* side : {&a, &b}) {
    const BundledRecipe* recipe = main_recipe(*side);
    if (side->scenario)
      names.merge(preset_names(*side->scenario,
                               recipe != nullptr ? value_in(recipe->recipe, "framework") : side->scenario->base.framework));
  }
  const auto inputs = [&](const StoredStudy& study) {
    return stored_inputs(study.provenance, store, study.bundle ? &*study.bundle : nullptr);
  };
  found.inputs = changed_inputs(inputs(a), inputs(b), names);
  found.recipe = recipe_differences(main_recipe(a), main_recipe(b));
  found.unequal = unequal_reasons(a, b);
  if (!found.unequal.empty()) return found;
  compare_figures("ship", main_recipe(a), main_recipe(b), a, b, found);
  for (const char* role : {"control", "without_cp", "no_margin", "out_of_memory", "slow"})
    compare_figures(role, with_role(a, role), with_role(b, role), a, b, found);
  return found;
}

Json difference_json(const StudyDifference& found, const StoredStudy& a, const StoredStudy& b) {
  Json recipe = Json::array(), figures = Json::array();
  for (const RecipeDifference& one : found.recipe) recipe.push_back({{"key", one.key}, {"a", one.a}, {"b", one.b}});
  for (const MovedRecipe& one : found.figures)
    figures.push_back(
        {{"role", one.role}, {"fits_a", one.fits_before}, {"fits_b", one.fits_now}, {"figures", moved_json(one.figures)}});
  return {{"a", a.label},
          {"b", b.label},
          {"inputs", changes_json(found.inputs)},
          {"recipe", recipe},
          {"comparable", found.unequal.empty()},
          {"reasons", found.unequal},
          {"results", found.unequal.empty() ? figures : Json(nullptr)},
          {"one_sided", found.one_sided}};
}

std::string difference_text(const StudyDifference& found, const StoredStudy& a, const StoredStudy& b) {
  std::string text =
      fmt::format("{} ({}) -> {} ({})\n", a.label, a.provenance.scenario_name, b.label, b.provenance.scenario_name);
  text += heading("Inputs");
  for (const InputChange& change : found.inputs) text += wrapped(change_text(change, "in " + a.label, "in " + b.label), 2) + "\n";
  if (found.inputs.empty()) text += "the same, by their hashes\n";
  text += heading("Recipe");
  for (const RecipeDifference& one : found.recipe) text += fmt::format("{}: {} -> {}\n", one.key, one.a, one.b);
  if (found.recipe.empty()) text += "the same\n";
  if (!found.unequal.empty()) return text;
  for (const MovedRecipe& one : found.figures) {
    text += heading(one.role == "ship" ? "Shipped recipe" : "Control: " + one.role);
    if (one.fits_before != one.fits_now) text += fmt::format("{} -> {}\n", one.fits_before, one.fits_now);
    if (one.figures.empty()) {
      text += "the same figures, bit for bit\n";
      continue;
    }
    Table table({{"figure", false}, {a.label}, {b.label}, {"change"}});
    for (const FigureChange& change : one.figures) {
      const double relative = change.relative();
      const auto [before, after] = printed_pair(change);
      table.row({figure_label(change.name), before, after, std::isfinite(relative) ? signed_percent(relative) : "from 0"});
    }
    text += table.text();
  }
  for (const std::string& sentence : found.one_sided) text += sentence + "\n";
  return text;
}

int run_diff(const DiffArguments& arguments) {
  const Store store = open_store(arguments.database, {.access = StoreAccess::kRead});
  std::vector<StoredStudy> sides;
  for (const std::string* word : {&arguments.a, &arguments.b}) {
    const Outcome<Reference> reference = parse_reference(*word);
    if (!reference.ok()) return refuse_input(reference.problems());
    Outcome<StoredStudy> study = stored_study(store, *reference);
    if (!study.ok()) return refuse_input(study.problems());
    sides.push_back(std::move(study).value());
  }
  const StudyDifference found = difference_of(sides[0], sides[1], store);
  if (arguments.json)
    print_json(difference_json(found, sides[0], sides[1]));
  else
    write_result(difference_text(found, sides[0], sides[1]));
  if (found.unequal.empty()) return kDone;
  Problems refused;
  for (const std::string& reason : found.unequal)
    refused.push_back({"runs.unequal", fmt::format("{} and {}", sides[0].label, sides[1].label), reason,
                       "figures are compared at the same model, effective token batch, recompute and hardware only"});
  return refuse_input(refused);
}

}  // namespace

void add_runs_diff(CLI::App& runs, int& exit_code) {
  auto arguments = std::make_shared<DiffArguments>();
  CLI::App* command = runs.add_subcommand("diff", "What differs between two stored recipes, in inputs and figures");
  command->add_option("a", arguments->a, "A run or bundle, e.g. 7 or bundle:3f2a")->required();
  command->add_option("b", arguments->b, "Another one")->required();
  command->footer(
      "Exit codes: 0 compared, 2 nothing of that name, or no equal comparison (the inputs are printed all the same).");
  add_runs_options(*command, *arguments);
  command->callback([arguments, &exit_code] { exit_code = run_diff(*arguments); });
}

}  // namespace cpfit::cli
