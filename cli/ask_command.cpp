// cpfit ask: the questions people ask of a setup, each answered with figures, as text or JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <iterator>
#include <memory>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/study.h"
#include "cli/terminal.h"
#include "model/launch/launch.h"
#include "model/quantity/text.h"
#include "model/quantity/text_file.h"
#include "sim/ask/documents.h"
#include "sim/ask/fewest.h"
#include "sim/ask/hazards.h"
#include "sim/ask/longest.h"
#include "sim/ask/oom.h"
#include "sim/ask/sensitivity.h"
#include "sim/ask/why_not.h"
#include "sim/plan/search.h"
#include "sim/plan/verdict.h"

namespace cpfit::cli {

namespace {

struct AskArguments {
  std::string scenario, recipe, calibration, key, message, lengths, job, format;
  std::int32_t cp = 0;
  bool json = false;
};

/// A scenario with its rates and workbench, and the recipe that was said.
struct Asked {
  Study study;
  std::optional<Recipe> recipe;
  std::unique_ptr<Workbench> bench;
};

/// On problems prints them; nothing then.
std::unique_ptr<Asked> ask_about(const AskArguments& arguments) {
  std::optional<Study> study = load_study(arguments.scenario, arguments.calibration);
  if (!study) return nullptr;
  auto asked = std::make_unique<Asked>();
  asked->study = std::move(*study);
  if (!arguments.recipe.empty()) {
    Outcome<Recipe> recipe = parse_recipe(arguments.recipe, asked->study.scenario.base);
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

Json candidate_or_null(const std::optional<Candidate>& candidate) { return candidate ? to_json(*candidate) : Json(nullptr); }

std::string degrees_text(const Recipe& recipe) {
  return fmt::format("tp={} pp={} dp={} {}", recipe.tp, recipe.pp, recipe.dp, to_text(recipe.recompute));
}

std::string change_text(double share) { return signed_percent(share); }

/// The recipe that a job's arguments say, on the scenario's GPUs where they do not state their number.
std::optional<std::string> recipe_of_job(const AskArguments& arguments) {
  const Outcome<LaunchFormat> format = parse_launch_format(arguments.format);
  if (!format.ok()) {
    print_problems(format.problems());
    return std::nullopt;
  }
  const Outcome<Scenario> scenario = load_scenario(arguments.scenario);
  if (!scenario.ok()) {
    print_problems(scenario.problems());
    return std::nullopt;
  }
  const Outcome<std::string> text = read_text_file(arguments.job, kMostWrittenBytes, "ask.file");
  if (!text.ok()) {
    print_problems(text.problems());
    return std::nullopt;
  }
  Outcome<LaunchReading> reading = read_launch(*format, *text, std::nullopt, scenario->model.layers);
  if (!reading.ok() && reading.problems().front().code == "launch.world_unknown")
    reading = read_launch(*format, *text, scenario->cluster.gpus(), scenario->model.layers);
  if (!reading.ok()) {
    print_argument_problems(arguments.job, reading.problems());
    return std::nullopt;
  }
  Recipe recipe = reading->recipe;
  if (starts(*format, scenario->base.framework)) recipe.framework = scenario->base.framework;
  return to_complete_text(recipe);
}

int ask_longest(const AskArguments& arguments) {
  const std::unique_ptr<Asked> asked = ask_about(arguments);
  if (!asked) return kBadInput;
  const ask::LongestAnswer answer = ask::longest_sequence(*asked->bench, asked->recipe);
  const std::string sentence = ask::sentence_of(answer);
  if (arguments.json) {
    Json rows = Json::array();
    for (const ask::LongestRow& row : answer.rows) {
      Json policies = Json::object();
      for (const auto& [policy, tokens] : row.by_recompute) policies[to_text(policy)] = tokens;
      rows.push_back({{"cp", row.cp},
                      {"longest_tokens", row.tokens},
                      {"longest_tokens_by_recompute", policies},
                      {"candidate", candidate_or_null(row.candidate)},
                      {"reason", row.reason}});
    }
    print_json({{"answer", sentence}, {"gpus", answer.gpus}, {"sequences_per_step", answer.sequences_per_step}, {"by_cp", rows}});
  } else {
    std::vector<Table::Column> columns = {{"cp"}};
    if (!answer.rows.empty()) {
      for (const auto& [policy, tokens] : answer.rows.front().by_recompute)
        columns.push_back({fmt::format("recompute {}", to_text(policy))});
    }
    columns.insert(columns.end(), {{"memory"}, {"step"}, {"cp exposed"}, {"recipe", false}});
    Table table(columns);
    for (const ask::LongestRow& row : answer.rows) {
      std::vector<std::string> cells = {std::to_string(row.cp)};
      for (const auto& [policy, tokens] : row.by_recompute) cells.push_back(tokens > 0 ? std::to_string(tokens) : "-");
      if (row.candidate) {
        cells.insert(cells.end(), {print_bytes(row.candidate->memory.device), print_time(row.candidate->time.step()),
                                   percent(exposed_cp_share(*row.candidate)), degrees_text(row.candidate->recipe)});
      } else {
        cells.insert(cells.end(), {"", "", "", row.reason});
      }
      table.row(cells, answer.best && &row == &answer.rows[*answer.best] ? Style::kGood : Style::kPlain);
    }
    write_result(wrapped(sentence, 0) + "\n\n" + table.text());
  }
  return answer.best ? kDone : kNothingFits;
}

int ask_fewest(const AskArguments& arguments) {
  const std::unique_ptr<Asked> asked = ask_about(arguments);
  if (!asked) return kBadInput;
  const Outcome<ask::FewestAnswer> answer = ask::fewest_gpus(*asked->bench);
  if (!answer.ok()) {
    print_problems(answer.problems());
    return kBadInput;
  }
  const std::string sentence = ask::sentence_of(*answer, asked->study.scenario);
  if (arguments.json) {
    Json rows = Json::array();
    for (const ask::FewestRow& row : answer->rows) {
      rows.push_back({{"gpus", row.gpus},
                      {"legal_recipes", row.legal},
                      {"missing_bytes", std::llround(row.missing.value())},
                      {"meets_requirements", row.feasible},
                      {"shortfall", row.shortfall},
                      {"candidate", candidate_or_null(row.candidate)}});
    }
    const auto gpus = [&](const std::optional<std::size_t>& row) { return row ? Json(answer->rows[*row].gpus) : Json(nullptr); };
    print_json({{"answer", sentence},
                {"fewest_gpus", gpus(answer->fits)},
                {"fewest_gpus_all_requirements", gpus(answer->feasible)},
                {"tried", rows}});
  } else {
    Table table({{"GPUs"}, {"legal"}, {"memory", false}, {"recipe", false}});
    constexpr std::size_t kShown = 12;
    const std::size_t most = answer->rows.size() > kShown ? answer->rows.size() - kShown : 0;
    const std::size_t begin = answer->fits ? std::min(most, *answer->fits) : most;
    if (begin > 0) table.row({"...", "", fmt::format("{} smaller sizes do not fit", begin), ""});
    for (std::size_t i = begin; i < answer->rows.size(); ++i) {
      const ask::FewestRow& row = answer->rows[i];
      const std::string memory = row.candidate    ? print_bytes(row.candidate->memory.device)
                                 : row.legal == 0 ? std::string("no legal recipe")
                                                  : fmt::format("misses {}", print_bytes(row.missing));
      table.row({std::to_string(row.gpus), std::to_string(row.legal), memory,
                 row.candidate ? fmt::format("cp={} {}", row.candidate->recipe.cp, degrees_text(row.candidate->recipe)) : ""},
                row.feasible ? Style::kGood : Style::kPlain);
    }
    write_result(wrapped(sentence, 0) + "\n\n" + table.text());
  }
  return answer->fits ? kDone : kNothingFits;
}

int ask_why_not(const AskArguments& arguments) {
  const std::unique_ptr<Asked> asked = ask_about(arguments);
  if (!asked) return kBadInput;
  const ask::WhyNot answer = ask::why_not(*asked->bench, arguments.cp);
  if (arguments.json) {
    Json violations = Json::array(), parts = Json::array();
    for (const Problem& problem : answer.violations)
      violations.push_back({{"code", problem.code}, {"message", problem.message}, {"repair", problem.repair}});
    for (const ask::TimePart& part : answer.parts)
      parts.push_back({{"part", part.name}, {"asked_seconds", part.asked.value()}, {"best_seconds", part.best.value()}});
    print_json({{"answer", answer.sentence},
                {"cp", answer.cp},
                {"rule", name_of(answer.rule)},
                {"more", answer.more},
                {"violations", violations},
                {"time_parts", parts},
                {"ships", answer.ships},
                {"asked", candidate_or_null(answer.asked)},
                {"best", candidate_or_null(answer.best)}});
    return kDone;
  }
  std::string text = wrapped(answer.sentence + ".", 0) + "\n";
  for (const std::string& more : answer.more) text += wrapped(more, 2) + "\n";
  for (const Problem& problem : answer.violations)
    text += wrapped(fmt::format("{}: {}", problem.message, problem.repair), 2) + "\n";
  if (answer.asked && answer.best && answer.rule != ask::WhyNotRule::kItShips) {
    const Candidate &one = *answer.asked, &best = *answer.best;
    Table table({{"", false}, {fmt::format("cp={}", answer.cp)}, {answer.ships ? "ships" : "nearest"}});
    table.row({"recipe", fmt::format("cp={} {}", one.recipe.cp, degrees_text(one.recipe)),
               fmt::format("cp={} {}", best.recipe.cp, degrees_text(best.recipe))});
    table.row({"memory", print_bytes(one.memory.device), print_bytes(best.memory.device)});
    table.row({"step", print_time(one.time.step()), print_time(best.time.step())});
    for (const ask::TimePart& part : answer.parts) {
      if (part.asked.value() > 0.0 || part.best.value() > 0.0)
        table.row({fmt::format("  {}", part.name), print_time(part.asked), print_time(part.best)});
    }
    text += "\n" + table.text();
  }
  write_result(text);
  return kDone;
}

/// What ships, else what comes nearest: the recipe around which an input is varied.
std::optional<Recipe> recipe_to_vary(Asked& asked) {
  if (asked.recipe) return asked.recipe;
  const Scenario& scenario = asked.study.scenario;
  const SearchResult found = search(*asked.bench, scenario.training, resolve_axes(scenario, asked.bench->rules()), {});
  std::optional<std::size_t> best = choose_ship(found.candidates, scenario.requirements);
  for (std::size_t i = 0; !best && i < found.candidates.size(); ++i) best = i;
  if (!best) return std::nullopt;
  if (choose_ship(found.candidates, scenario.requirements)) return found.candidates[*best].recipe;
  for (std::size_t i = 0; i < found.candidates.size(); ++i) {
    if (ranks_before(found.candidates[i], found.candidates[*best], scenario.requirements)) best = i;
  }
  return found.candidates[*best].recipe;
}

int ask_matters(const AskArguments& arguments) {
  const std::unique_ptr<Asked> asked = ask_about(arguments);
  if (!asked) return kBadInput;
  const std::optional<Recipe> base = recipe_to_vary(*asked);
  if (!base) {
    print_problems({{"ask.no_recipe", arguments.scenario, "no recipe of the search space is legal", "name one with --recipe"}});
    return kNothingFits;
  }
  const Outcome<ask::Sensitivity> answer = ask::sensitivity(*asked->bench, asked->study.rates, *base, arguments.key);
  if (!answer.ok()) {
    print_argument_problems("KEY", answer.problems());
    return kBadInput;
  }
  const std::string sentence = ask::sentence_of(*answer);
  if (arguments.json) {
    Json rows = Json::array();
    for (const ask::Variation& row : answer->variations) {
      rows.push_back({{"value", row.value},
                      {"tokens_per_second_per_gpu_change", row.speed_change},
                      {"device_bytes_change", std::llround(row.memory_change.value())},
                      {"fit_changes", row.fit_changes},
                      {"reason", row.reason},
                      {"candidate", candidate_or_null(row.candidate)}});
    }
    print_json({{"answer", sentence},
                {"key", answer->key},
                {"now", answer->now},
                {"matters", answer->matters()},
                {"because", answer->because},
                {"around", to_complete_text(answer->base.recipe)},
                {"variations", rows}});
    return kDone;
  }
  std::string text = wrapped(sentence, 0) + "\n" + wrapped(fmt::format("Around {}", to_text(answer->base.recipe)), 2) + "\n";
  if (!answer->variations.empty()) {
    Table table({{"tried", false}, {"tokens/s per GPU"}, {"memory"}, {"verdict", false}});
    for (const ask::Variation& row : answer->variations) {
      const bool figures = row.candidate.has_value() || row.speed_change != 0.0;
      const double bytes = row.memory_change.value();
      table.row({row.value, figures ? change_text(row.speed_change) : "-",
                 row.candidate ? fmt::format("{}{}", bytes < 0 ? "-" : "+", print_bytes(Bytes(std::abs(bytes)))) : "-",
                 row.candidate
                     ? fmt::format("{}{}", name_of(row.candidate->verdict.fit),
                                   row.fit_changes ? " (was " + std::string(name_of(answer->base.verdict.fit)) + ")" : "")
                     : row.reason});
    }
    text += "\n" + table.text();
  }
  write_result(text);
  return kDone;
}

Json amount_json(const std::optional<Bytes>& amount) { return amount ? Json(std::llround(amount->value())) : Json(nullptr); }

int ask_oom(const AskArguments& arguments) {
  std::string pasted = arguments.message;
  if (pasted == "-") pasted.assign(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
  const Outcome<ask::OomMessage> message = ask::parse_oom(pasted);
  if (!message.ok()) {
    print_problems(message.problems());
    return kBadInput;
  }
  ask::OomDiagnosis diagnosis = ask::diagnose(*message);
  if (!arguments.scenario.empty()) {
    AskArguments known_job = arguments;
    if (!arguments.job.empty()) {
      const std::optional<std::string> recipe = recipe_of_job(arguments);
      if (!recipe) return kBadInput;
      known_job.recipe = *recipe;
    }
    const std::unique_ptr<Asked> asked = ask_about(known_job);
    if (!asked) return kBadInput;
    Outcome<ask::OomDiagnosis> known = ask::diagnose(*message, *asked->bench, asked->study.scenario.base);
    if (!known.ok()) {
      print_argument_problems("--recipe", known.problems());
      return kBadInput;
    }
    diagnosis = std::move(known).value();
  }
  if (arguments.json) {
    Json tensors = Json::array();
    for (const ask::TensorMatch& match : diagnosis.tensors)
      tensors.push_back({{"tensor", match.tensor}, {"formula", match.formula}, {"bytes", std::llround(match.bytes.value())}});
    print_json({{"answer", diagnosis.sentence},
                {"cause", name_of(diagnosis.cause)},
                {"message",
                 {{"tried_bytes", std::llround(message->tried.value())},
                  {"capacity_bytes", amount_json(message->capacity)},
                  {"free_bytes", amount_json(message->free)},
                  {"allocated_bytes", amount_json(message->allocated)},
                  {"cached_bytes", amount_json(message->cached())},
                  {"outside_bytes", amount_json(message->outside())},
                  {"other_processes_bytes", amount_json(message->other_processes())}}},
                {"tensors", tensors},
                {"where", diagnosis.where},
                {"repair", diagnosis.repair},
                {"expected", diagnosis.expected},
                {"changed_keys", diagnosis.changed},
                {"predicted", candidate_or_null(diagnosis.predicted)},
                {"change", candidate_or_null(diagnosis.change)}});
    return kDone;
  }
  std::string text = wrapped(fmt::format("Most likely: {}.", diagnosis.sentence), 2) + "\n";
  for (const ask::TensorMatch& match : diagnosis.tensors)
    text += wrapped(fmt::format("{} is the size of {} ({} = {})", print_bytes(message->tried), match.tensor, match.formula,
                                print_bytes(match.bytes)),
                    2) +
            "\n";
  if (!diagnosis.where.empty()) text += wrapped(diagnosis.where, 2) + "\n";
  text += wrapped(fmt::format("Do: {}.", diagnosis.repair), 2) + "\n";
  if (!diagnosis.expected.empty()) text += wrapped(fmt::format("Expected: {}.", diagnosis.expected), 2) + "\n";
  write_result(text);
  return kDone;
}

int ask_documents(const AskArguments& arguments) {
  const Outcome<std::string> text = read_text_file(arguments.lengths, kMostTableBytes, "ask.file");
  if (!text.ok()) {
    print_problems(text.problems());
    return kBadInput;
  }
  const Outcome<std::vector<DocumentClass>> lengths = ask::parse_lengths(*text);
  if (!lengths.ok()) {
    print_argument_problems(arguments.lengths, lengths.problems());
    return kBadInput;
  }
  const std::unique_ptr<Asked> asked = ask_about(arguments);
  if (!asked) return kBadInput;
  const Outcome<ask::DocumentsAnswer> answer = ask::documents(*asked->bench, *lengths);
  if (!answer.ok()) {
    print_argument_problems(arguments.lengths, answer.problems());
    return kBadInput;
  }
  const std::string sentence = ask::sentence_of(*answer);
  if (arguments.json) {
    Json rows = Json::array();
    for (const ask::DocumentsRow& row : answer->rows) {
      const bool packed = row.packing.sequences > 0;
      rows.push_back({{"cp", row.cp},
                      {"packed_sequences", row.packing.sequences},
                      {"padding_share", packed ? row.packing.padding_share() : 0.0},
                      {"gap_share", packed ? row.packing.gap_share() : 0.0},
                      {"waste_share", packed ? row.packing.waste_share() : 0.0},
                      {"whole_cut_imbalance", row.whole_cut_imbalance},
                      {"local_token_share", row.local_share},
                      {"per_document_gain", row.per_document_gain},
                      {"dynamic_gain_bound", row.dynamic_gain_bound},
                      {"candidate", candidate_or_null(row.candidate)},
                      {"reason", row.reason}});
    }
    print_json({{"answer", sentence},
                {"documents", answer->documents},
                {"mean_tokens", answer->mean},
                {"longest_tokens", answer->longest},
                {"sequence_tokens", answer->length},
                {"one_a_sequence_waste_share", answer->one_a_sequence_waste},
                {"sampled", answer->sampled},
                {"by_cp", rows}});
    return kDone;
  }
  Table table({{"cp"},
               {"padding"},
               {"gaps"},
               {"whole cut"},
               {"per document gains"},
               {"need no ring"},
               {"dynamic gains <="},
               {"tokens/s per GPU"},
               {"memory", false}});
  for (const ask::DocumentsRow& row : answer->rows) {
    if (row.packing.sequences == 0) {
      table.row({std::to_string(row.cp), "", "", "", "", "", "", "", row.reason});
      continue;
    }
    table.row(
        {std::to_string(row.cp), percent(row.packing.padding_share()), percent(row.packing.gap_share()),
         fmt::format("{:.2f}", row.whole_cut_imbalance), percent(row.per_document_gain), percent(row.local_share),
         percent(row.dynamic_gain_bound), row.candidate ? fmt::format("{:.0f}", row.candidate->tokens_per_second_per_gpu) : "-",
         row.candidate ? fmt::format("{} {}", print_bytes(row.candidate->memory.device), name_of(row.candidate->verdict.fit))
                       : row.reason});
  }
  std::string out = wrapped(sentence, 0) + "\n\n" + table.text();
  out += wrapped(
             "whole cut: the busiest rank's attended pairs over the mean, when a packed sequence is cut as one. need no ring: "
             "tokens in "
             "documents no longer than a rank's share.",
             0) +
         "\n";
  if (answer->sampled) out += "note: the documents were thinned to 20000 for packing, their shares kept\n";
  write_result(out);
  return kDone;
}

int ask_hazards(const AskArguments& arguments) {
  const std::unique_ptr<Asked> asked = ask_about(arguments);
  if (!asked) return kBadInput;
  const Recipe& recipe = asked->study.scenario.base;
  const LegalityCase legal = asked->bench->legality(asked->study.scenario.training, recipe);
  if (const Problems problems = explain_violations(legal); !problems.empty()) {
    print_argument_problems("--recipe", problems);
    return kBadInput;
  }
  const std::vector<ask::Hazard> rows = ask::hazards_of({asked->study.scenario, asked->bench->rules(), recipe});
  if (arguments.json) {
    Json json = Json::array();
    for (const ask::Hazard& row : rows)
      json.push_back({{"id", row.id},
                      {"kind", name_of(row.kind)},
                      {"what", row.what},
                      {"when", row.when},
                      {"check", row.check},
                      {"source", row.source}});
    print_json({{"recipe", to_complete_text(recipe)}, {"hazards", json}, {"known", ask::all_hazards().size()}});
    return kDone;
  }
  std::string text =
      wrapped(fmt::format("{} of {} known hazards concern {}.", rows.size(), ask::all_hazards().size(), to_text(recipe)), 0) +
      "\n";
  for (const ask::Hazard& row : rows) {
    text += "\n" + styled(fmt::format("{} ({})", row.id, name_of(row.kind)), Style::kWarn) + "\n";
    text += wrapped(fmt::format("  {}.", row.what), 2) + "\n" +
            wrapped(fmt::format("  Where: {}. {}.", row.when, row.source), 2) + "\n";
    text += wrapped(fmt::format("  Check: {}.", row.check), 2) + "\n";
  }
  write_result(text);
  return kDone;
}

}  // namespace

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
