// cpfit ask matters: whether an input matters.
#include <fmt/format.h>

#include <cmath>

#include "cli/ask/questions.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/terminal.h"
#include "model/quantity/text.h"
#include "sim/ask/sensitivity.h"
#include "sim/plan/search.h"
#include "sim/plan/verdict.h"

namespace cpfit::cli {

namespace {

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

}  // namespace

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
  warn_of(*asked, answer->base);
  for (const ask::Variation& row : answer->variations) warn_of(*asked, row.candidate);
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
    print_answer(*asked, {{"answer", sentence},
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
      table.row({row.value, figures ? signed_percent(row.speed_change) : "-",
                 row.candidate ? fmt::format("{}{}", bytes < 0 ? "-" : "+", print_bytes(Bytes(std::abs(bytes)))) : "-",
                 row.candidate
                     ? fmt::format("{}{}", name_of(row.candidate->verdict.fit),
                                   row.fit_changes ? " (was " + std::string(name_of(answer->base.verdict.fit)) + ")" : "")
                     : row.reason});
    }
    text += "\n" + table.text();
  }
  write_answer(*asked, text);
  return kDone;
}

}  // namespace cpfit::cli
