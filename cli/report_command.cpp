// cpfit report: a study as one HTML file, with its pictures.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <ostream>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/proof.h"
#include "cli/report/report_page.h"
#include "cli/simulate_timeline.h"
#include "cli/study.h"
#include "cli/terminal.h"
#include "cli/write_file.h"
#include "db/store/verification_store.h"
#include "sim/plan/plan.h"

namespace cpfit::cli {

namespace {

struct ReportArguments {
  std::string scenario;
  std::string out;
  std::string calibration;
  std::string database;
};

/// Lengths around the study's own: an eighth to four times, but 4k tokens at least and 4M at most.
std::vector<std::int64_t> lengths_around(std::int64_t tokens) {
  constexpr std::int64_t kShortest = 4096, kLongest = std::int64_t{1} << 22;
  return length_ladder(std::max(kShortest, tokens / 8), std::max(kShortest, std::min(kLongest, 4 * tokens)), 1, 1);
}

/// The lanes of the rank that ends last, or why there are none.
void add_lanes(const ReportArguments& arguments, const Study& study, const Recipe& recipe, ReportContent& content) {
  Outcome<Workbench> bench = Workbench::build(study.scenario, study.rates);
  if (!bench.ok()) {
    content.no_lanes = bench.problems().front().message;
    return;
  }
  const Outcome<Candidate> screened = bench.value().evaluate(study.scenario.training, recipe);  // prepares the network
  const Outcome<SimulatedStep> step =
      screened.ok() ? simulate_step(bench.value(), recipe, {}) : Outcome<SimulatedStep>(screened.problems());
  if (!step.ok()) {
    content.no_lanes = step.problems().front().message;
    return;
  }
  Timeline lanes = marked_lanes(*step);
  content.step = lanes.step;
  for (SpanLane& lane : lanes.lanes)
    if (lane.rank == step->now.answer.rank) content.lanes.push_back(std::move(lane));
  content.commands.push_back(fmt::format("cpfit simulate {} --fidelity timeline --trace step.json --recipe \"{}\"",
                                         arguments.scenario, to_text(recipe, study.scenario.base)));
}

int run_report(const ReportArguments& arguments) {
  const std::optional<Study> study = load_study(arguments.scenario, arguments.calibration, arguments.database);
  if (!study) return kBadInput;
  const std::string out =
      arguments.out.empty() ? std::filesystem::path(arguments.scenario).stem().string() + ".html" : arguments.out;

  std::optional<ProgressBar> bar;
  bar.emplace("screening");
  PlanOptions options;
  options.controls.progress = [&](double share) { bar->update(share); };
  Outcome<PlanResult> planned = plan(study->scenario, study->rates, options);
  bar.reset();
  if (!planned.ok()) {
    print_problems(planned.problems());
    return kBadInput;
  }
  ReportContent content;
  content.study = &*study;
  content.plan = std::move(planned).value();
  content.plan.provenance = provenance_of(*study);
  content.commands.push_back(fmt::format("cpfit plan {}", arguments.scenario));
  const PlanResult& plan = content.plan;
  if (plan.ships || !plan.candidates.empty()) {
    const Recipe& recipe = plan.ships ? plan.ship.recipe : plan.candidates.front().recipe;
    Scenario around = study->scenario;
    around.base = recipe;  // its framework decides which rules hold
    content.sweep = controlled_sweep(around, study->rates, recipe, {1, 2, 4, 8, 16},
                                     lengths_around(study->scenario.training.sequence.count()));
    add_lanes(arguments, *study, recipe, content);
    std::vector<AttentionProof> proofs;
    if (!arguments.database.empty()) proofs = proofs_of(open_store(arguments.database, {.access = StoreAccess::kRead}));
    content.proof = proof_text(ProofBook(study->scenario, std::move(proofs)).of(recipe), arguments.database);
  }
  write_file(out, [&](std::ostream& file) { file << report_page(content); });
  write_result(wrapped(plan.answer, 0) + fmt::format("\nReport: {}\n", out));
  return plan.ships ? kDone : kNothingFits;
}

}  // namespace

void add_report(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ReportArguments>();
  CLI::App* command = app.add_subcommand("report", "A study as one HTML file with its pictures: to read, to send, to keep");
  command->add_option("scenario", arguments->scenario, "Scenario file")->required();
  command->add_option("--out", arguments->out, "File to write (default: the scenario's name with .html, here)")
      ->check(file_name());
  command
      ->add_option("--calibration", arguments->calibration,
                   "Measured rates: a file of `calibrate fit --out`, DATABASE:NAME, or a name or id in --db; \"defaults\"")
      ->check(file_name());
  command->add_option("--db", arguments->database, "SQLite file with verifications and calibrations")->check(file_name());
  command->callback([arguments, &exit_code] { exit_code = run_report(*arguments); });
}

}  // namespace cpfit::cli
