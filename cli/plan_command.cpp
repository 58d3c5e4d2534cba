// cpfit plan: scenario in, verdict out, stored in SQLite with the evidence.
#include <fmt/format.h>

#include <memory>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/plan_text.h"
#include "cli/study.h"
#include "cli/terminal.h"
#include "cli/verify/proof.h"
#include "db/store/run_recorder.h"
#include "db/store/verification_store.h"
#include "model/quantity/counted.h"
#include "sim/plan/detail.h"
#include "sim/plan/plan.h"

namespace cpfit::cli {

namespace {

struct PlanArguments {
  std::string scenario;
  std::string database;
  std::string calibration;
  std::size_t top = 10;
  bool json = false;
  bool no_candidates = false;
  bool no_crossover = false;
  bool no_timeline = false;
};

/// What the database proves; none without one.
ProofBook proof_book(const PlanArguments& arguments, const Scenario& scenario) {
  if (arguments.database.empty()) return {scenario, {}};
  return {scenario, proofs_of(open_store(arguments.database, {.access = StoreAccess::kRead}))};
}

Json plan_json(const Study& study, const PlanResult& result, std::optional<std::int64_t> run, const ProofBook& proofs) {
  Outcome<Workbench> bench = Workbench::build(study.scenario, study.rates);
  const auto detail = [&](const Candidate& candidate) {
    return bench.ok() ? std::optional(detail_of(bench.value(), study.scenario.training, candidate)) : std::nullopt;
  };
  Json json = to_json(result, run, detail, proof_source(proofs));
  json["calibration"] = calibration_json(study.calibration);
  return json;
}

/// How to look closer: a recipe text that reads back over this scenario, and where the run is.
std::string what_next(const PlanArguments& arguments, const Study& study, const PlanResult& result, std::int64_t run) {
  std::string text;
  if (result.ships) {
    text += fmt::format("Tensor by tensor: cpfit simulate {} --ledger --recipe \"{}\"\n", arguments.scenario,
                        to_text(result.ship.recipe, study.scenario.base));
  }
  if (run > 0) text += fmt::format("Stored as run {} in {}\n", run, arguments.database);
  return text;
}

int run_plan(const PlanArguments& arguments) {
  std::optional<Study> study = load_study(arguments.scenario, arguments.calibration, arguments.database);
  if (!study) return kBadInput;
  const Provenance provenance = provenance_of(*study);
  std::unique_ptr<RunRecorder> recorder;
  if (!arguments.database.empty()) recorder = std::make_unique<RunRecorder>(arguments.database, provenance);
  if (recorder) recorder->keep_inputs(study->scenario, study->chosen ? &*study->chosen : nullptr);
  const std::int64_t run = recorder ? static_cast<std::int64_t>(recorder->run()) : 0;
  if (recorder && recorder->continued() > 0)
    fmt::print(stderr, "cpfit: continuing interrupted run {} ({} stored)\n", run, counted(recorder->continued(), "candidate"));

  PlanOptions options;
  options.top = arguments.top;
  options.crossover = !arguments.no_crossover;
  options.timeline = !arguments.no_timeline;
  if (recorder && !arguments.no_candidates)
    options.controls.sink = [&](const std::vector<Candidate>& batch) { recorder->receive(batch); };
  std::optional<ProgressBar> bar;
  if (!arguments.json) {
    bar.emplace("screening");
    options.controls.progress = [&](double share) { bar->update(share); };
  }
  Outcome<PlanResult> planned = plan(study->scenario, study->rates, options);
  bar.reset();
  if (!planned.ok()) {
    print_problems(planned.problems());
    return kBadInput;
  }
  PlanResult result = std::move(planned).value();
  result.provenance = provenance;
  if (recorder) recorder->finish(result);
  if (result.ships) warn_of_groups(*study, result.ship.recipe);

  const ProofBook proofs = proof_book(arguments, study->scenario);
  try {
    if (arguments.json)
      print_json(plan_json(*study, result, recorder ? std::optional(run) : std::nullopt, proofs));
    else
      write_result(plan_text(result, result.ships ? proof_text(proofs.of(result.ship.recipe), arguments.database) : "") +
                   calibration_text(study->calibration) + what_next(arguments, *study, result, run));
  } catch (const Error& error) {
    if (!recorder) throw;
    throw Error(fmt::format("{}; the result is stored: cpfit runs show {} --db {}", error.what(), run, arguments.database));
  }
  return result.ships ? kDone : kNothingFits;
}

}  // namespace

void add_plan(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<PlanArguments>();
  CLI::App* command = app.add_subcommand("plan", "Find the recipe to ship for a scenario: verdict, why-not, crossover");
  command->add_option("scenario", arguments->scenario, "Scenario file (TOML, see docs/scenario.md)")->required();
  command
      ->add_option("--db", arguments->database,
                   "SQLite file to store the run in (created when absent; an interrupted run continues)")
      ->check(file_name());
  command->add_option("--top", arguments->top, "Recipes to list")->capture_default_str()->check(CLI::Range(1, 1000));
  command
      ->add_option("--calibration", arguments->calibration,
                   "Measured rates: a file of `calibrate fit --out`, DATABASE:NAME, or a name or id in --db; \"defaults\"")
      ->check(file_name());
  command->add_flag("--json", arguments->json, "Print one JSON object");
  command->add_flag("--no-candidates", arguments->no_candidates, "Store the verdict only, not a row per screened recipe");
  command->add_flag("--no-crossover", arguments->no_crossover, "Skip the search along the sequence length");
  command->add_flag("--no-timeline", arguments->no_timeline, "Do not simulate the shortlist on the timeline");
  command->callback([arguments, &exit_code] { exit_code = run_plan(*arguments); });
}

}  // namespace cpfit::cli
