// cpfit curve: memory and step time along the sequence length, per CP degree (controlled sweep), CP=1 as the control.
#include <fmt/format.h>

#include <algorithm>
#include <map>
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
  std::string calibration;
  std::string lengths = "4k..1M";
  std::optional<std::string> recipe;
  std::vector<std::int32_t> cp;
  bool json = false;
};

/// "4k..1M" or a list "32k,64k,128k"; ascending, none twice.
Outcome<std::vector<std::int64_t>> read_lengths(const std::string& text) {
  if (const std::size_t dots = text.find(".."); dots != std::string::npos) {
    const Outcome<Tokens> from = parse_tokens(text.substr(0, dots)), to = parse_tokens(text.substr(dots + 2));
    if (!from.ok()) return from.problems();
    if (!to.ok()) return to.problems();
    if (from->count() < 1) return Problem{"curve.range", "", "a sequence has at least one token", "write 4k..1M"};
    if (*from > *to) {
      return Problem{"curve.range", "", fmt::format("the range {} is empty", text), "write the shorter length first: 4k..1M"};
    }
    return length_ladder(from->count(), to->count(), 1, 1);
  }
  std::set<std::int64_t> lengths;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const Outcome<Tokens> length = parse_tokens(text.substr(begin, end - begin));
    if (!length.ok()) return length.problems();
    if (length->count() < 1) return Problem{"curve.range", "", "a sequence has at least one token", "write 32k,48k,64k"};
    lengths.insert(length->count());
    begin = end + 1;
  }
  return std::vector<std::int64_t>(lengths.begin(), lengths.end());
}

/// What a sweep says of CP > 1 against CP = 1; 0 where no length shows it.
struct SweepCrossover {
  std::int64_t needed_at_tokens = 0;  // shortest at which CP = 1 does not fit and a higher degree does
  std::int64_t faster_at_tokens = 0;  // shortest at which a higher degree gives more tokens/s per GPU
};

SweepCrossover crossover_of(const std::vector<SweepPointOrReason>& points) {
  std::map<std::int64_t, const Candidate*> control;
  for (const SweepPointOrReason& point : points) {
    if (point.cp == 1 && point.candidate) control[point.sequence] = &*point.candidate;
  }
  SweepCrossover found;
  const auto keep_shorter = [](std::int64_t& shortest, std::int64_t length) {
    if (shortest == 0 || length < shortest) shortest = length;
  };
  for (const SweepPointOrReason& point : points) {
    const auto at = control.find(point.sequence);
    if (point.cp == 1 || !point.candidate || at == control.end()) continue;
    if (at->second->verdict.fit != Fit::kFits && point.candidate->verdict.fit == Fit::kFits)
      keep_shorter(found.needed_at_tokens, point.sequence);
    if (point.candidate->tokens_per_second_per_gpu > at->second->tokens_per_second_per_gpu)
      keep_shorter(found.faster_at_tokens, point.sequence);
  }
  return found;
}

Json curve_json(const std::vector<SweepPointOrReason>& points, const std::string& held,
                const std::optional<CalibrationUse>& calibration) {
  const SweepCrossover crossover = crossover_of(points);
  const auto tokens = [](std::int64_t count) { return count > 0 ? Json(count) : Json(nullptr); };
  Json json;
  json["held_constant"] = held;
  json["control"] = "cp=1";
  json["crossover"] = {{"needed_at_tokens", tokens(crossover.needed_at_tokens)},
                       {"faster_at_tokens", tokens(crossover.faster_at_tokens)},
                       {"held_constant", held}};
  json["points"] = Json::array();
  for (const SweepPointOrReason& point : points) {
    Json entry{{"cp", point.cp}, {"sequence_tokens", point.sequence}, {"gpus", point.gpus}};
    if (point.candidate)
      entry["candidate"] = to_json(*point.candidate);
    else
      entry["reason"] = point.reason;
    json["points"].push_back(entry);
  }
  json["calibration"] = calibration_json(calibration);
  return json;
}

std::string memory_cell(const Candidate& candidate) {
  const std::string bytes = print_bytes(candidate.memory.device);
  switch (candidate.verdict.fit) {
    case Fit::kFits:
      return styled(bytes + "  ", Style::kGood);
    case Fit::kAtRisk:
      return styled(bytes + " ?", Style::kWarn);
    case Fit::kOom:
      break;
  }
  return styled(bytes + " x", Style::kBad);
}

/// Why cells are empty: a line per reason, with the degrees and lengths it holds for.
std::string reasons_text(const std::vector<SweepPointOrReason>& points) {
  std::map<std::string, std::map<std::int32_t, std::vector<std::int64_t>>> places;
  for (const SweepPointOrReason& point : points) {
    if (!point.candidate) places[point.reason][point.cp].push_back(point.sequence);
  }
  std::string text;
  for (const auto& [reason, by_cp] : places) {
    std::string where;
    for (const auto& [cp, lengths] : by_cp) {
      where += fmt::format("{}cp={} at {}", where.empty() ? "" : ", ", cp, print_tokens(Tokens(lengths.front())));
      if (lengths.size() > 1) where += fmt::format(" to {}", print_tokens(Tokens(lengths.back())));
    }
    text += wrapped(fmt::format("- {}: {}", where, reason), 2) + "\n";
  }
  return text;
}

std::string curve_text(const std::vector<SweepPointOrReason>& points, const std::vector<std::int32_t>& cps,
                       const std::vector<std::int64_t>& lengths, const std::string& held) {
  std::vector<Table::Column> memory_columns{{"sequence"}}, rate_columns{{"sequence"}};
  for (const std::int32_t cp : cps) {
    memory_columns.push_back({fmt::format("cp={}  ", cp), true});  // the figures carry a mark of two columns
    rate_columns.push_back({fmt::format("cp={}", cp), true});
  }
  Table memory(memory_columns), rate(rate_columns);
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    std::vector<std::string> memory_row{print_tokens(Tokens(lengths[s]))}, rate_row = memory_row;
    for (std::size_t c = 0; c < cps.size(); ++c) {
      const std::optional<Candidate>& candidate = points[c * lengths.size() + s].candidate;
      memory_row.push_back(candidate ? memory_cell(*candidate) : "-  ");
      rate_row.push_back(candidate ? fmt::format("{:.0f}", candidate->tokens_per_second_per_gpu) : "-");
    }
    memory.row(memory_row);
    rate.row(rate_row);
  }
  const SweepCrossover crossover = crossover_of(points);
  const auto from = [](std::int64_t tokens) {
    return tokens > 0 ? "from " + print_tokens(Tokens(tokens)) + " tokens" : std::string("at no length shown");
  };
  return wrapped(fmt::format("Controlled sweep: {}. CP grows and with it the GPUs; cp=1 is the control.", held), 2) +
         "\n\nMemory of the worst rank (? at risk, x out of memory)\n" + memory.text() + "\nTokens/s per GPU\n" + rate.text() +
         "\n" +
         wrapped(fmt::format("With all that held, CP > 1 is needed to fit {} and gives more tokens/s per GPU than cp=1 {}.",
                             from(crossover.needed_at_tokens), from(crossover.faster_at_tokens)),
                 2) +
         "\n" + reasons_text(points);
}

int run_curve(const CurveArguments& arguments) {
  std::optional<Study> study = load_study(arguments.scenario, arguments.calibration);
  if (!study) return kBadInput;
  const Outcome<std::vector<std::int64_t>> lengths = read_lengths(arguments.lengths);
  if (!lengths.ok()) {
    print_argument_problems("--seq", lengths.problems());
    return kBadInput;
  }
  const std::optional<ChosenRecipe> chosen = choose_recipe(arguments.recipe, *study);
  if (!chosen) return kBadInput;
  const Recipe* base = &chosen->recipe;
  study->scenario.base = *base;  // its framework decides which rules hold
  const std::vector<std::int32_t> cps = arguments.cp.empty() ? std::vector<std::int32_t>{1, 2, 4, 8, 16} : arguments.cp;
  const std::vector<SweepPointOrReason> points = controlled_sweep(study->scenario, study->rates, *base, cps, *lengths);
  for (const SweepPointOrReason& point : points) {
    // A degree's groups are the same at every length.
    if (point.candidate && point.sequence == lengths->front()) warn_of_groups(*study, point.candidate->recipe);
  }
  const Training& training = study->scenario.training;
  const std::string held = fmt::format("tp={}, pp={}, dp={}, recompute={}, micro_batch={}, about {} tokens per step", base->tp,
                                       base->pp, base->dp, to_text(base->recompute), base->micro_batch,
                                       print_tokens(Tokens(training.global_batch * training.sequence.count())));
  if (arguments.json)
    print_json(curve_json(points, held, study->calibration));
  else
    write_result(curve_text(points, cps, *lengths, held) + calibration_text(study->calibration));
  const bool any_legal = std::any_of(points.begin(), points.end(), [](const auto& point) { return point.candidate.has_value(); });
  return any_legal ? kDone : kNothingFits;
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
  command
      ->add_option("--calibration", arguments->calibration,
                   "Measured rates: a file of `calibrate fit --out`, DATABASE:NAME, or a name or id in --db; \"defaults\"")
      ->check(file_name());
  command->add_flag("--json", arguments->json, "Print one JSON object");
  command->callback([arguments, &exit_code] { exit_code = run_curve(*arguments); });
}

}  // namespace cpfit::cli
