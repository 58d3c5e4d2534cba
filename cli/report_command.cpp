// cpfit report: a study as one HTML file, with its pictures.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <ostream>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/study.h"
#include "cli/terminal.h"
#include "cli/verify/proof.h"
#include "cli/write_file.h"
#include "db/store/verification_store.h"
#include "sim/report/study_report.h"

namespace cpfit::cli {

namespace {

struct ReportArguments {
  std::string scenario;
  std::string out;
  std::string calibration;
  std::string database;
};

int run_report(const ReportArguments& arguments) {
  std::optional<Study> study = load_study(arguments.scenario, arguments.calibration, arguments.database);
  if (!study) return kBadInput;
  const std::string out =
      arguments.out.empty() ? std::filesystem::path(arguments.scenario).stem().string() + ".html" : arguments.out;

  std::optional<ProgressBar> bar;
  bar.emplace("screening");
  SearchControls controls;
  controls.progress = [&](double share) { bar->update(share); };
  Outcome<report::ReportContent> computed = report::study_report(study->scenario, study->rates, arguments.scenario, controls);
  bar.reset();
  if (!computed.ok()) {
    print_problems(computed.problems());
    return kBadInput;
  }
  report::ReportContent content = std::move(computed).value();
  const PlanResult& plan = content.plan;
  content.plan.provenance = provenance_of(*study);
  if (const Recipe* recipe = report::recipe_of(plan)) {
    warn_of_groups(*study, *recipe);
    std::vector<AttentionProof> proofs;
    if (!arguments.database.empty()) proofs = proofs_of(open_store(arguments.database, {.access = StoreAccess::kRead}));
    content.proof = proof_text(ProofBook(study->scenario, std::move(proofs)).of(*recipe), arguments.database);
  }
  content.rates = calibration_text(study->calibration);
  if (study->calibration) content.beware = study->calibration->warnings;
  write_file(out, [&](std::ostream& file) { file << report::report_page(content); });
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
