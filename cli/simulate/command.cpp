// cpfit simulate: one recipe in detail.
#include <fmt/format.h>

#include <memory>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/plan_text.h"
#include "cli/simulate/timeline.h"
#include "cli/simulate/timeline_json.h"
#include "cli/simulate/timeline_text.h"
#include "cli/study.h"
#include "cli/terminal.h"
#include "model/quantity/text.h"
#include "sim/plan/detail.h"
#include "sim/plan/sources.h"

namespace cpfit::cli {

namespace {

struct SimulateArguments {
  std::string scenario;
  std::string calibration;
  std::optional<std::string> recipe;
  std::string fidelity = "screen";
  std::int32_t stage = -1;
  bool ledger = false;
  bool json = false;
  TimelineOptions timeline;
  [[nodiscard]] bool on_timeline() const { return fidelity == "timeline"; }
};

std::string fit_sentence(const Candidate& candidate) {
  const MemoryVerdict& verdict = candidate.verdict;
  const std::string place = fmt::format("on stage {} in {}", candidate.memory.stage, name_of(candidate.memory.phase));
  switch (verdict.fit) {
    case Fit::kOom:
      return styled(fmt::format("It misses by {} {}.", print_bytes(candidate.memory.device - verdict.capacity), place),
                    Style::kBad);
    case Fit::kAtRisk:
      return styled(fmt::format("It is at risk: its upper bound leaves {} of the device {}, less than the margin asked for.",
                                print_bytes(verdict.margin), place),
                    Style::kWarn);
    case Fit::kFits:
      break;
  }
  return styled(fmt::format("It fits: its upper bound leaves {} of the device {}.", print_bytes(verdict.margin), place),
                Style::kGood);
}

int run_simulate(const SimulateArguments& arguments) {
  if (const Problems misplaced = only_for_timelines(arguments.timeline); !arguments.on_timeline() && !misplaced.empty()) {
    print_problems(misplaced);
    return kBadInput;
  }
  std::optional<Study> study = load_study(arguments.scenario, arguments.calibration, arguments.timeline.database);
  if (!study) return kBadInput;
  const std::optional<ChosenRecipe> chosen = choose_recipe(arguments.recipe, *study);
  if (!chosen) return kBadInput;
  const Recipe* recipe = &chosen->recipe;
  study->scenario.base = *recipe;  // its framework decides which rules hold
  Outcome<Workbench> bench = Workbench::build(study->scenario, study->rates);
  if (!bench.ok()) {
    print_argument_problems("--recipe", bench.problems());
    return kBadInput;
  }
  const Training& training = study->scenario.training;
  std::optional<SimulatedStep> step;
  Outcome<Candidate> candidate = bench.value().evaluate(training, *recipe);
  if (candidate.ok() && arguments.on_timeline()) {
    Outcome<SimulatedStep> simulated = simulate_step(bench.value(), *recipe, arguments.timeline);
    if (!simulated.ok()) {
      print_problems(simulated.problems());
      return kBadInput;
    }
    step = std::move(simulated).value();
    candidate = step->now.candidate;
  }
  if (!candidate.ok()) {
    print_argument_problems("--recipe", candidate.problems());
    return kBadInput;
  }
  warn_of_groups(*study, *recipe);
  const CandidateDetail detail = detail_of(bench.value(), training, *candidate);
  const std::int32_t stage = arguments.stage >= 0 ? arguments.stage : candidate->memory.stage;
  if (stage >= recipe->pp) {
    print_problems({{"simulate.stage", "--stage", fmt::format("stage {} does not exist", stage),
                     fmt::format("stages are 0 to {}", recipe->pp - 1)}});
    return kBadInput;
  }
  std::optional<std::int64_t> stored;
  if (step) {
    write_timeline_files(*step, arguments.timeline);
    stored = store_timeline(*step, arguments.timeline, provenance_of(*study));
  }
  if (arguments.json) {
    Json json = to_json(*candidate, &detail);
    if (step) add_timeline(json, *step);
    if (stored) json["timeline"]["stored"] = *stored;
    json["calibration"] = calibration_json(study->calibration);
    if (arguments.ledger) json["ledger"] = to_json(ledger_of(bench.value(), training, *candidate, stage));
    print_json(json);
  } else {
    std::string text = styled(to_text(candidate->recipe), Style::kBold) + "\n";
    text += (step ? timeline_text(*step) : time_text(*candidate)) + "\n" + memory_text(*candidate, detail.stages);
    text += fit_sentence(*candidate) + "\n";
    text +=
        wrapped(fmt::format("{:.0f} tokens/s per GPU, MFU {}, HFU {} (attention counted causal half, head counted, dense peak)",
                            candidate->tokens_per_second_per_gpu, percent(candidate->mfu), percent(candidate->hfu)),
                2) +
        "\n";
    text += calibration_text(study->calibration);
    for (const std::string& remark : remarks_on(bench.value().context(training), *recipe))
      text += wrapped("note: " + remark, 2) + "\n";
    if (!candidate->in_range) text += "note: an operator lies outside the measured range of its rate surface\n";
    if (!step && !detail.links.empty())
      text += fmt::format("\n{}\n{}", styled("Busiest links", Style::kBold), links_text(detail.links, 8));
    if (arguments.ledger) {
      text += fmt::format("\n{}\n{}", styled(fmt::format("Ledger of stage {}", stage), Style::kBold),
                          ledger_text(ledger_of(bench.value(), training, *candidate, stage)));
    }
    for (const auto& [path, what] :
         {std::pair(&arguments.timeline.trace, "Trace, for ui.perfetto.dev"), std::pair(&arguments.timeline.spans, "Spans")}) {
      if (!path->empty()) text += fmt::format("{}: {}\n", what, *path);
    }
    if (stored) text += fmt::format("Timeline {} in {}\n", *stored, arguments.timeline.database);
    write_result(text);
  }
  return candidate->verdict.fit == Fit::kOom ? kNothingFits : kDone;
}

}  // namespace

void add_simulate(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<SimulateArguments>();
  CLI::App* command = app.add_subcommand("simulate", "Memory and time of one recipe, in detail");
  command->add_option("scenario", arguments->scenario, "Scenario file")->required();
  command->add_option("--recipe", arguments->recipe,
                      "e.g. \"tp=2,cp=4,pp=1,dp=1\"; missing keys take the scenario's values (default: what plan ships)");
  command->add_option("--fidelity", arguments->fidelity, "screen: closed form; timeline: every kernel and transfer")
      ->capture_default_str()
      ->check(CLI::IsMember({"screen", "timeline"}));
  CLI::Option* ledger = command->add_flag("--ledger", arguments->ledger, "List every tensor with its formula");
  command->add_option("--stage", arguments->stage, "Stage of the ledger (default: the one that peaks)")
      ->check(CLI::Range(0, 1 << 20))
      ->needs(ledger);
  command
      ->add_option("--calibration", arguments->calibration,
                   "Measured rates: a file of `calibrate fit --out`, DATABASE:NAME, or a name or id in --db; \"defaults\"")
      ->check(file_name());
  command->add_flag("--json", arguments->json, "Print one JSON object");
  add_timeline_options(*command, arguments->timeline);
  command->callback([arguments, &exit_code] { exit_code = run_simulate(*arguments); });
}

}  // namespace cpfit::cli
