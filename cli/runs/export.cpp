// cpfit runs export: a stored run's recipe as a bundle.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <ostream>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/runs/bundle_build.h"
#include "cli/runs/bundle_evidence.h"
#include "cli/runs/commands.h"
#include "cli/runs/controls.h"
#include "cli/runs/review_text.h"
#include "cli/runs/stored_study.h"
#include "cli/study.h"
#include "cli/terminal.h"
#include "cli/version.h"
#include "cli/write_file.h"
#include "db/store/bundle_store.h"
#include "model/presets/embedded.h"
#include "model/quantity/hash.h"

namespace cpfit::cli {

namespace {

struct ExportArguments : RunsArguments {
  std::string which;
  std::int64_t run = 0;  // where it is one
  std::string recipe, out;
};

/// What keeps this cpfit from saying of a run what the run said: other presets or another version, inputs that are gone.
Problems cannot_speak_for(const StoredStudy& study, std::int64_t run, const std::string& database) {
  const std::string again = fmt::format("plan it again: cpfit plan {} --db {}", study.provenance.scenario_path, database);
  if (study.status != "done") return {{"bundle.unfinished", study.label, "the run has no verdict yet", again}};
  std::string changed;
  for (const auto& [name, hash] : study.provenance.input_hashes) {
    if (input_kind(name) != InputKind::kPreset) continue;
    const auto file = std::ranges::find(embedded_files(), name, &EmbeddedFile::name);
    if (file == embedded_files().end() || sha256_hex(file->text) != hash) changed += (changed.empty() ? "" : ", ") + name;
  }
  if (study.provenance.tool_version != kVersion)
    changed +=
        fmt::format("{}cpfit itself ({} then, {} now)", changed.empty() ? "" : ", ", study.provenance.tool_version, kVersion);
  if (!changed.empty()) {
    return {{"bundle.stale", study.label, "it was made with other rules than this cpfit's: " + changed,
             fmt::format("see what that means with cpfit runs requalify {} --db {}, or {}", run, database, again)}};
  }
  if (!study.scenario) {
    Problems problems = study.scenario_trouble;
    for (Problem& problem : problems) problem.where = study.label + (problem.where.empty() ? "" : ": " + problem.where);
    return problems;
  }
  if (study.calibrated && !study.calibration) {
    return {{"bundle.calibration", study.label,
             fmt::format("its calibration '{}' ({}) is not in {}", study.calibration_name, study.calibration_id.substr(0, 12),
                         database),
             "fit it into this database (cpfit calibrate fit --db), or plan again with --calibration and --db"}};
  }
  return {};
}

Json export_json(const Bundle& bundle, const std::string& id, const ExportArguments& arguments) {
  Json controls = Json::array();
  for (const BundledRecipe& control : bundle.controls)
    controls.push_back({{"role", control.role}, {"recipe", control.recipe}, {"sentence", control.sentence}});
  return {{"bundle", id},
          {"out", arguments.out},
          {"run", arguments.run > 0 ? Json(arguments.run) : Json(nullptr)},
          {"recipe", bundle.predicted.recipe},
          {"ranks", bundle.mesh.size()},
          {"sentence", bundle.predicted.sentence},
          {"controls", controls},
          {"equivalence", bundle.equivalence.sentence},
          {"calibration", bundle.calibration_id}};
}

std::string_view control_words(const std::string& role) {
  if (role == "slow") return "too large";
  return role == "without_cp" ? "without CP" : "too small";
}

std::string export_text(const Bundle& bundle, const std::string& id, const ExportArguments& arguments) {
  std::string text = fmt::format("Bundle {} of {}: {}\n", id.substr(0, 12), bundle.scenario_name, arguments.out);
  text += wrapped(bundle.predicted.sentence, 2) + "\n";
  for (const BundledRecipe& control : bundle.controls)
    text += wrapped(fmt::format("control ({}): {}", control_words(control.role), control.sentence), 2) + "\n";
  for (const auto& [role, reason] : bundle.missing_controls)
    text += wrapped(fmt::format("no control ({}): {}", control_words(role), reason), 2) + "\n";
  text += wrapped(bundle.equivalence.sentence, 2) + "\n";
  return text + fmt::format("Elsewhere: cpfit runs import {}\n", arguments.out);
}

/// A bundle that is stored, out again as it came in.
int export_stored(const ExportArguments& arguments, const Store& store, const std::string& digits) {
  if (!arguments.recipe.empty()) {
    return refuse_input({{"bundle.recipe", "--recipe", "a bundle holds one recipe and its proof",
                          "export the run it came from with this recipe, or leave --recipe away"}});
  }
  const Outcome<std::string> text = load_bundle(store, digits);
  if (!text.ok()) return refuse_input(text.problems());
  const Outcome<Bundle> bundle = parse_bundle(*text, store.path());
  if (!bundle.ok()) return refuse_input(bundle.problems());
  write_file(arguments.out, [&](std::ostream& file) { file << *text; });
  if (arguments.json)
    print_json(export_json(*bundle, bundle_id(*text), arguments));
  else
    write_result(export_text(*bundle, bundle_id(*text), arguments));
  return kDone;
}

int run_export(ExportArguments arguments) {
  const Outcome<Reference> reference = parse_reference(arguments.which);
  if (!reference.ok()) return refuse_input(reference.problems());
  const Store store = open_store(arguments.database, {.access = StoreAccess::kRead});
  if (reference->kind == Reference::Kind::kBundle) return export_stored(arguments, store, reference->digits);
  arguments.run = reference->number;
  const Outcome<StoredStudy> stored = stored_study(store, *reference);
  if (!stored.ok()) return refuse_input(stored.problems());
  const StoredStudy& study = *stored;
  if (const Problems problems = cannot_speak_for(study, arguments.run, arguments.database); !problems.empty())
    return refuse_input(problems);
  const PlanResult& plan = *study.plan;
  if (!plan.ships && arguments.recipe.empty()) {
    print_problems({{"bundle.nothing_ships", study.label, "this run ships no recipe", "name one with --recipe"}});
    return kNothingFits;
  }
  const Scenario& scenario = *study.scenario;
  const Outcome<Recipe> recipe = parse_recipe(arguments.recipe, plan.ships ? plan.ship.recipe : scenario.base);
  if (!recipe.ok()) {
    print_argument_problems("--recipe", recipe.problems());
    return kBadInput;
  }
  const Outcome<RateSet> rates = rates_of(study.calibration ? &*study.calibration : nullptr, scenario);
  if (!rates.ok()) return refuse_input(rates.problems());
  const Outcome<Candidate> candidate = evaluate_recipe(scenario, *rates, *recipe);
  if (!candidate.ok()) {
    print_argument_problems("--recipe", candidate.problems());
    return kBadInput;
  }
  const bool ship = plan.ships && *recipe == plan.ship.recipe;
  if (ship && figures_of(plan.ship) != figures_of(*candidate)) {
    const FigureChange change = changed_figures(figures_of(plan.ship), figures_of(*candidate)).front();
    const auto [before, after] = printed_pair(change);
    return refuse_input(
        {{"bundle.differs", study.label,
          fmt::format("{} is {} in the run, this cpfit computes {} from the same inputs", figure_label(change.name), before,
                      after),
          fmt::format("plan it again: cpfit plan {} --db {}", study.provenance.scenario_path, arguments.database)}});
  }
  ChosenControls controls = choose_controls(plan, *candidate);
  NamedTexts inputs(study.provenance.input_hashes.begin(), study.provenance.input_hashes.end());
  const Calibration calibration = study.calibration ? *study.calibration : default_calibration();
  const Outcome<Bundle> bundle =
      make_bundle({scenario, *rates, calibration, kVersion, ship ? "ship" : "chosen", *recipe, std::move(controls.found),
                   std::move(controls.missing), equivalence_of(scenario, *recipe, store), std::move(inputs)});
  if (!bundle.ok()) return refuse_input(bundle.problems());
  const std::string text = bundle_text(*bundle), id = bundle_id(text);
  if (const Outcome<Bundle> again = parse_bundle(text, arguments.out); !again.ok() || *again != *bundle) {
    return refuse_input(
        {{"bundle.text", study.label, "the scenario or a file that it names is no UTF-8: it would not come back as it is",
          "convert the file to UTF-8 and plan again"}});
  }
  write_file(arguments.out, [&](std::ostream& file) { file << text; });
  if (arguments.json)
    print_json(export_json(*bundle, id, arguments));
  else
    write_result(export_text(*bundle, id, arguments));
  return kDone;
}

}  // namespace

void add_runs_export(CLI::App& runs, int& exit_code) {
  auto arguments = std::make_shared<ExportArguments>();
  CLI::App* command = runs.add_subcommand("export", "A run's recipe as one file that holds all it stands on (docs/runs.md)");
  command->add_option("which", arguments->which, "A run, e.g. 7; or a stored bundle, bundle:3f2a")->required();
  command->add_option("--recipe", arguments->recipe,
                      "Another recipe than the one that ships; missing keys take the ship's values");
  command->add_option("--out", arguments->out, "File to write")->required()->check(file_name());
  add_runs_options(*command, *arguments);
  command->callback([arguments, &exit_code] { exit_code = run_export(*arguments); });
}

}  // namespace cpfit::cli
