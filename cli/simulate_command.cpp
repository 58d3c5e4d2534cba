// cpfit simulate: one recipe in detail.
#include <fmt/format.h>

#include <memory>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/plan_text.h"
#include "cli/study.h"
#include "cli/terminal.h"
#include "sim/plan/detail.h"

namespace cpfit::cli {

namespace {

struct SimulateArguments {
  std::string scenario;
  std::string recipe;
  std::string fidelity = "screen";
  std::int32_t stage = -1;
  bool ledger = false;
  bool json = false;
};

int run_simulate(const SimulateArguments& arguments) {
  std::optional<Study> study = load_study(arguments.scenario);
  if (!study) return kBadInput;
  Outcome<Recipe> recipe = parse_recipe(arguments.recipe, study->scenario.base);
  if (!recipe.ok()) {
    print_problems(recipe.problems());
    return kBadInput;
  }
  Outcome<Workbench> bench = Workbench::build(study->scenario, study->rates);
  if (!bench.ok()) {
    print_problems(bench.problems());
    return kBadInput;
  }
  const Training& training = study->scenario.training;
  const Outcome<Candidate> candidate = bench.value().evaluate(training, *recipe);
  if (!candidate.ok()) {
    print_problems(candidate.problems());
    return kBadInput;
  }
  const CandidateDetail detail = detail_of(bench.value(), training, *candidate);
  const std::int32_t stage = arguments.stage >= 0 ? arguments.stage : candidate->memory.stage;
  if (stage >= recipe->pp) {
    print_problems({{"simulate.stage", "--stage", fmt::format("stage {} does not exist", stage),
                     fmt::format("stages are 0 to {}", recipe->pp - 1)}});
    return kBadInput;
  }
  if (arguments.json) {
    Json json = to_json(*candidate, &detail);
    if (arguments.ledger) json["ledger"] = to_json(ledger_of(bench.value(), training, *candidate, stage));
    print_json(json);
  } else {
    fmt::print("{}\n{}\n{}", styled(to_text(candidate->recipe), Style::kBold), time_text(*candidate),
               memory_text(*candidate, detail.stages));
    fmt::print("{:.0f} tokens/s per GPU, MFU {:.1f} %, HFU {:.1f} % (attention counted causal half, head counted, dense peak)\n",
               candidate->tokens_per_second_per_gpu, candidate->mfu * 100.0, candidate->hfu * 100.0);
    if (!candidate->in_range) fmt::print("note: an operator lies outside the measured range of its rate surface\n");
    if (!detail.links.empty()) fmt::print("\n{}\n{}", styled("Busiest links", Style::kBold), links_text(detail.links, 8));
    if (arguments.ledger) {
      fmt::print("\n{}\n{}", styled(fmt::format("Ledger of stage {}", stage), Style::kBold),
                 ledger_text(ledger_of(bench.value(), training, *candidate, stage)));
    }
  }
  return candidate->verdict.fit == Fit::kOom ? kNothingFits : kDone;
}

}  // namespace

void add_simulate(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<SimulateArguments>();
  CLI::App* command = app.add_subcommand("simulate", "Memory and time of one recipe, in detail");
  command->add_option("scenario", arguments->scenario, "Scenario file")->required();
  command->add_option("--recipe", arguments->recipe, "e.g. \"tp=2,cp=4,pp=1,dp=1\"; missing keys take the scenario's values")
      ->required();
  command->add_option("--fidelity", arguments->fidelity, "screen: closed form")
      ->capture_default_str()
      ->check(CLI::IsMember({"screen"}));
  command->add_flag("--ledger", arguments->ledger, "List every tensor with its formula");
  command->add_option("--stage", arguments->stage, "Stage of the ledger (default: the one that peaks)")
      ->check(CLI::Range(0, 255));
  command->add_flag("--json", arguments->json, "Print one JSON object");
  command->callback([arguments, &exit_code] { exit_code = run_simulate(*arguments); });
}

}  // namespace cpfit::cli
