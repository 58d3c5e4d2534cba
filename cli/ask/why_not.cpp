// cpfit ask why-not: why another CP degree is not taken.
#include <fmt/format.h>

#include "cli/ask/questions.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/terminal.h"
#include "model/quantity/text.h"
#include "sim/ask/why_not.h"

namespace cpfit::cli {

int ask_why_not(const AskArguments& arguments) {
  const std::unique_ptr<Asked> asked = ask_about(arguments);
  if (!asked) return kBadInput;
  const ask::WhyNot answer = ask::why_not(*asked->bench, arguments.cp);
  warn_of(*asked, answer.asked);
  warn_of(*asked, answer.best);
  if (arguments.json) {
    Json violations = Json::array(), parts = Json::array();
    for (const Problem& problem : answer.violations)
      violations.push_back({{"code", problem.code}, {"message", problem.message}, {"repair", problem.repair}});
    for (const ask::TimePart& part : answer.parts)
      parts.push_back({{"part", part.name}, {"asked_seconds", part.asked.value()}, {"best_seconds", part.best.value()}});
    print_answer(*asked, {{"answer", answer.sentence},
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
  write_answer(*asked, text);
  return kDone;
}

}  // namespace cpfit::cli
