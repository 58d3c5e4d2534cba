// cpfit ask longest: longest sequence on these GPUs.
#include <fmt/format.h>

#include "cli/ask/questions.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/terminal.h"
#include "model/quantity/text.h"
#include "sim/ask/longest.h"
#include "sim/plan/verdict.h"

namespace cpfit::cli {

int ask_longest(const AskArguments& arguments) {
  const std::unique_ptr<Asked> asked = ask_about(arguments);
  if (!asked) return kBadInput;
  const ask::LongestAnswer answer = ask::longest_sequence(*asked->bench, asked->recipe);
  for (const ask::LongestRow& row : answer.rows) warn_of(*asked, row.candidate);
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
    print_answer(
        *asked,
        {{"answer", sentence}, {"gpus", answer.gpus}, {"sequences_per_step", answer.sequences_per_step}, {"by_cp", rows}});
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
    write_answer(*asked, wrapped(sentence, 0) + "\n\n" + table.text());
  }
  return answer.best ? kDone : kNothingFits;
}

}  // namespace cpfit::cli
