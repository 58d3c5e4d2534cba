// cpfit curve: memory and step time along the sequence length, per CP degree (controlled sweep), CP=1 as the control.
#include <fmt/format.h>

#include <memory>
#include <set>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/study.h"
#include "cli/terminal.h"
#include "model/quantity/text.h"
#include "sim/plan/lengths.h"
#include "sim/plan/plan.h"

namespace cpfit::cli {

namespace {

struct CurveArguments {
  std::string scenario;
  std::string lengths = "4k..1M";
  std::string recipe;
  std::vector<std::int32_t> cp;
  bool json = false;
};

/// "4k..1M" or a list "32k,64k,128k".
Outcome<std::vector<std::int64_t>> read_lengths(const std::string& text, std::int64_t multiple) {
  const auto one = [](const std::string& word) { return parse_tokens(word); };
  if (const std::size_t dots = text.find(".."); dots != std::string::npos) {
    const Outcome<Tokens> from = one(text.substr(0, dots)), to = one(text.substr(dots + 2));
    if (!from.ok()) return from.problems();
    if (!to.ok()) return to.problems();
    if (*from > *to || from->count() < 1) {
      return Problem{"curve.range", "--seq", fmt::format("the range {} is empty", text),
                     "write the shorter length first: 4k..1M"};
    }
    return length_ladder(from->count(), to->count(), multiple, 1);
  }
  std::vector<std::int64_t> lengths;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const Outcome<Tokens> length = one(text.substr(begin, end - begin));
    if (!length.ok()) return length.problems();
    lengths.push_back(length->count());
    begin = end + 1;
  }
  return lengths;
}

int run_curve(const CurveArguments& arguments) {
  std::optional<Study> study = load_study(arguments.scenario);
  if (!study) return kBadInput;
  Outcome<std::vector<std::int64_t>> lengths = read_lengths(arguments.lengths, 1);
  if (!lengths.ok()) {
    print_problems(lengths.problems());
    return kBadInput;
  }
  // Around which recipe? What the person names, else what `plan` would ship (or comes nearest to).
  Recipe base = study->scenario.base;
  if (!arguments.recipe.empty()) {
    Outcome<Recipe> named = parse_recipe(arguments.recipe, base);
    if (!named.ok()) {
      print_problems(named.problems());
      return kBadInput;
    }
    base = std::move(named).value();
  } else {
    PlanOptions options;
    options.crossover = false;
    Outcome<PlanResult> planned = plan(study->scenario, study->rates, options);
    if (!planned.ok()) {
      print_problems(planned.problems());
      return kBadInput;
    }
    if (planned->ships)
      base = planned->ship.recipe;
    else if (!planned->candidates.empty())
      base = planned->candidates.front().recipe;
  }
  std::vector<std::int32_t> cps = arguments.cp;
  if (cps.empty()) cps = {1, 2, 4, 8, 16};
  const std::vector<SweepPointOrReason> points = controlled_sweep(study->scenario, study->rates, base, cps, *lengths);
  const std::string held =
      fmt::format("tp={}, pp={}, dp={}, recompute={}, micro_batch={}, about {} tokens per step", base.tp, base.pp, base.dp,
                  to_text(base.recompute), base.micro_batch,
                  print_tokens(Tokens(study->scenario.training.global_batch * study->scenario.training.sequence.count())));
  if (arguments.json) {
    Json json;
    json["held_constant"] = held;
    json["control"] = "cp=1";
    json["points"] = Json::array();
    for (const SweepPointOrReason& point : points) {
      Json entry{{"cp", point.cp}, {"sequence_tokens", point.sequence}, {"gpus", point.gpus}};
      if (point.candidate)
        entry["candidate"] = to_json(*point.candidate);
      else
        entry["reason"] = point.reason;
      json["points"].push_back(entry);
    }
    print_json(json);
    return kDone;
  }
  fmt::print("Controlled sweep: {}. CP grows and with it the GPUs; cp=1 is the control.\n", held);
  std::vector<Table::Column> columns{{"sequence"}};
  for (const std::int32_t cp : cps) columns.push_back({fmt::format("cp={}", cp), true});
  Table memory(columns), time(columns);
  std::set<std::string> reasons;
  for (std::size_t s = 0; s < lengths->size(); ++s) {
    const std::string length = print_tokens(Tokens((*lengths)[s]));
    std::vector<std::string> memory_row{length}, time_row{length};
    for (std::size_t c = 0; c < cps.size(); ++c) {
      const SweepPointOrReason& point = points[c * lengths->size() + s];
      if (!point.candidate) {
        memory_row.push_back("-");
        time_row.push_back("-");
        reasons.insert(fmt::format("cp={}: {}", point.cp, point.reason));
        continue;
      }
      const Fit fit = point.candidate->verdict.fit;
      memory_row.push_back(styled(print_bytes(point.candidate->memory.device) + (fit == Fit::kFits     ? "  "
                                                                                 : fit == Fit::kAtRisk ? " ?"
                                                                                                       : " x"),
                                  fit == Fit::kFits     ? Style::kGood
                                  : fit == Fit::kAtRisk ? Style::kWarn
                                                        : Style::kBad));
      time_row.push_back(fmt::format("{:.0f}", point.candidate->tokens_per_second_per_gpu));
    }
    memory.row(memory_row);
    time.row(time_row);
  }
  fmt::print("\nMemory of the worst rank (? at risk, x out of memory)\n{}\nTokens/s per GPU\n{}", memory.text(), time.text());
  for (const std::string& reason : reasons) fmt::print("{}\n", wrapped("- " + reason, 2));
  return kDone;
}

}  // namespace

void add_curve(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<CurveArguments>();
  CLI::App* command = app.add_subcommand("curve", "Memory and throughput by sequence length, per CP degree (controlled sweep)");
  command->add_option("scenario", arguments->scenario, "Scenario file")->required();
  command->add_option("--seq", arguments->lengths, "Lengths: a range 4k..1M (doubling) or a list 32k,48k,64k")
      ->capture_default_str();
  command->add_option("--recipe", arguments->recipe, "Recipe to sweep around (default: what plan ships)");
  command->add_option("--cp", arguments->cp, "CP degrees (default 1,2,4,8,16)")->delimiter(',')->check(CLI::Range(1, 4096));
  command->add_flag("--json", arguments->json, "Print one JSON object");
  command->callback([arguments, &exit_code] { exit_code = run_curve(*arguments); });
}

}  // namespace cpfit::cli
