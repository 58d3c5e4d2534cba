// cpfit ask hazards: known hazards that concern a recipe.
#include <fmt/format.h>

#include "cli/ask/questions.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/terminal.h"
#include "sim/ask/hazards.h"

namespace cpfit::cli {

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

}  // namespace cpfit::cli
