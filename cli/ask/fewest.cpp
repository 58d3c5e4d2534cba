// cpfit ask fewest: fewest GPUs for this sequence.
#include <fmt/format.h>

#include <cmath>

#include "cli/ask/questions.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/terminal.h"
#include "model/quantity/text.h"
#include "sim/ask/fewest.h"

namespace cpfit::cli {

int ask_fewest(const AskArguments& arguments) {
  const std::unique_ptr<Asked> asked = ask_about(arguments);
  if (!asked) return kBadInput;
  const Outcome<ask::FewestAnswer> answer = ask::fewest_gpus(*asked->bench);
  if (!answer.ok()) {
    print_problems(answer.problems());
    return kBadInput;
  }
  for (const std::optional<std::size_t>& row : {answer->fits, answer->feasible}) {
    if (row) warn_of(*asked, answer->rows[*row].candidate);
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
    print_answer(*asked, {{"answer", sentence},
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
    write_answer(*asked, wrapped(sentence, 0) + "\n\n" + table.text());
  }
  return answer->fits ? kDone : kNothingFits;
}

}  // namespace cpfit::cli
