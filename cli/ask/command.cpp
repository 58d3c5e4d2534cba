// cpfit ask: the questions people ask of a setup, each answered with figures.
#include <fmt/format.h>

#include "cli/ask/questions.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/terminal.h"

namespace cpfit::cli {

std::unique_ptr<Asked> ask_about(const AskArguments& arguments) {
  std::optional<Study> study = load_study(arguments.scenario, arguments.calibration);
  if (!study) return nullptr;
  auto asked = std::make_unique<Asked>();
  asked->study = std::move(*study);
  if (!arguments.recipe.empty()) {
    Outcome<Recipe> recipe = parse_recipe_on(arguments.recipe, asked->study.scenario.base, asked->study.scenario.cluster.gpus());
    if (!recipe.ok()) {
      print_argument_problems("--recipe", recipe.problems());
      return nullptr;
    }
    asked->recipe = std::move(recipe).value();
    asked->study.scenario.base = *asked->recipe;  // its framework decides which rules hold
  }
  Outcome<Workbench> bench = Workbench::build(asked->study.scenario, asked->study.rates);
  if (!bench.ok()) {
    print_argument_problems("--recipe", bench.problems());
    return nullptr;
  }
  asked->bench = std::make_unique<Workbench>(std::move(bench).value());
  return asked;
}

void warn_of(Asked& asked, const std::optional<Candidate>& candidate) {
  if (candidate) warn_of_groups(asked.study, candidate->recipe);
}

void print_answer(const Asked& asked, Json json) {
  json["calibration"] = calibration_json(asked.study.calibration);
  print_json(json);
}

void write_answer(const Asked& asked, const std::string& text) {
  const std::string rates = calibration_text(asked.study.calibration);
  write_result(text + (rates.empty() ? "" : "\n" + rates));
}

Json candidate_or_null(const std::optional<Candidate>& candidate) { return candidate ? to_json(*candidate) : Json(nullptr); }

std::string degrees_text(const Recipe& recipe) {
  return fmt::format("tp={} pp={} dp={} {}", recipe.tp, recipe.pp, recipe.dp, to_text(recipe.recompute));
}

void add_ask(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("ask", "Questions about a setup: longest, fewest, why-not, matters, oom, documents, hazards");
  command->require_subcommand(1);
  const auto add = [&](const char* name, const char* what, int (*answer)(const AskArguments&)) {
    auto arguments = std::make_shared<AskArguments>();
    CLI::App* sub = command->add_subcommand(name, what);
    sub->add_flag("--json", arguments->json, "Print one JSON object");
    sub->callback([arguments, answer, &exit_code] { exit_code = answer(*arguments); });
    return std::pair(sub, arguments);
  };
  const auto scenario = [](CLI::App* sub, const std::shared_ptr<AskArguments>& arguments) {
    sub->add_option("--calibration", arguments->calibration,
                    "Measured rates, as for plan: a file of `calibrate fit --out`, or DATABASE:NAME")
        ->check(file_name());
    return sub->add_option("scenario", arguments->scenario, "Scenario file");
  };
  const auto recipe = [](CLI::App* sub, const std::shared_ptr<AskArguments>& arguments, const char* what) {
    return sub->add_option("--recipe", arguments->recipe, what);
  };
  {
    auto [sub, arguments] = add("longest", "Longest sequence that fits these GPUs, by CP degree", ask_longest);
    scenario(sub, arguments)->required();
    recipe(sub, arguments, "Hold this recipe and vary its CP degree only (dp makes up the GPUs)");
  }
  {
    auto [sub, arguments] = add("fewest", "Fewest GPUs of this kind for this sequence", ask_fewest);
    scenario(sub, arguments)->required();
  }
  {
    auto [sub, arguments] = add("why-not", "Why another CP degree is not taken", ask_why_not);
    scenario(sub, arguments)->required();
    sub->add_option("--cp", arguments->cp, "The degree")->required()->check(CLI::Range(1, 1 << 20));
  }
  {
    auto [sub, arguments] = add("matters", "Whether an input matters, by how much, or why not", ask_matters);
    scenario(sub, arguments)->required();
    sub->add_option("key", arguments->key,
                    "Recipe key, sequence_length, global_batch, grad_dtype, memory_margin, exposed_budget, rates.gemm ...")
        ->required();
    recipe(sub, arguments, "Recipe around which it is varied (default: what plan ships)");
  }
  {
    auto [sub, arguments] = add("oom", "What an out-of-memory message of PyTorch comes from, and what to change", ask_oom);
    sub->add_option("message", arguments->message, "The message, quoted; - reads it from standard input")->required();
    CLI::Option* of = scenario(sub, arguments);
    CLI::Option* ran = recipe(sub, arguments, "The recipe that ran (default: the scenario's)")->needs(of);
    CLI::Option* job = sub->add_option("--job", arguments->job,
                                       "The job's script or configuration instead of a recipe, as launch --read takes it")
                           ->needs(of)
                           ->excludes(ran)
                           ->check(file_name());
    job->needs(sub->add_option("--format", arguments->format, "Of --job: megatron, bridge, torchtitan or deepspeed")->needs(job));
  }
  {
    auto [sub, arguments] =
        add("documents", "What document lengths waste, and what cutting by document or dynamic CP gains", ask_documents);
    scenario(sub, arguments)->required();
    sub->add_option("--lengths", arguments->lengths, "File with LENGTH or LENGTH, COUNT a line")->required()->check(file_name());
  }
  {
    auto [sub, arguments] =
        add("hazards", "Known wrong gradients, lost tokens and options without effect that concern a recipe", ask_hazards);
    scenario(sub, arguments)->required();
    recipe(sub, arguments, "The recipe")->required();
  }
}

}  // namespace cpfit::cli
