// cpfit runs: what is stored.
#include <fmt/format.h>

#include <ctime>
#include <memory>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/plan_text.h"
#include "cli/terminal.h"
#include "db/query/runs.h"
#include "model/quantity/text.h"

namespace cpfit::cli {

namespace {

constexpr const char* kDefaultDatabase = "cpfit.sqlite";

std::string date_of(std::int64_t unix_seconds) {
  const std::time_t when = unix_seconds;
  std::tm parts{};
  gmtime_r(&when, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  return text;
}

int list(const std::string& database, bool json) {
  const Store store = open_store(database, {.access = StoreAccess::kRead});
  const std::vector<RunSummary> runs = list_runs(store);
  if (json) {
    Json rows = Json::array();
    for (const RunSummary& run : runs) {
      rows.push_back({{"run", static_cast<std::int64_t>(run.run)},
                      {"scenario", run.scenario_name},
                      {"path", run.scenario_path},
                      {"status", name_of(run.status)},
                      {"started_unix_seconds", run.started_unix_seconds},
                      {"candidates", run.stored_candidates},
                      {"ship", run.ship},
                      {"control", run.control},
                      {"ship_step_seconds", run.ship_step_seconds ? Json(*run.ship_step_seconds) : Json(nullptr)},
                      {"tool_version", run.tool_version},
                      {"rule_set", run.rule_set},
                      {"rates", run.rates_version}});
    }
    print_json({{"database", database}, {"runs", rows}});
    return kDone;
  }
  Table table(
      {{"run"}, {"started (UTC)", false}, {"status", false}, {"scenario", false}, {"candidates"}, {"step"}, {"ship", false}});
  for (const RunSummary& run : runs) {
    table.row({std::to_string(static_cast<std::int64_t>(run.run)), date_of(run.started_unix_seconds),
               std::string(name_of(run.status)), run.scenario_name, std::to_string(run.stored_candidates),
               run.ship_step_seconds ? print_time(Seconds(*run.ship_step_seconds)) : "-",
               run.ship.empty() ? "nothing ships" : run.ship});
  }
  fmt::print("{}", table.text());
  return kDone;
}

int show(const std::string& database, std::int64_t id, bool json) {
  const Store store = open_store(database, {.access = StoreAccess::kRead});
  const Outcome<PlanResult> result = load_run(store, RunId{id});
  if (!result.ok()) {
    print_problems(result.problems());
    return kBadInput;
  }
  if (json) {
    print_json(to_json(*result, id, nullptr));
    return kDone;
  }
  fmt::print("run {} of {}: {} (cpfit {}, rules {}, rates {})\n", id, database, result->provenance.scenario_path,
             result->provenance.tool_version, result->provenance.rule_set, result->provenance.rates_version);
  fmt::print("{}", plan_text(*result));
  if (!result->ledgers.empty()) {
    fmt::print("\n{}\n{}", styled("Ledger of " + result->ledgers.front().first, Style::kBold),
               ledger_text(result->ledgers.front().second));
  }
  fmt::print("\n{}\n", styled("Inputs (SHA-256)", Style::kBold));
  for (const auto& [name, hash] : result->provenance.input_hashes) fmt::print("{}  {}\n", hash, name);
  return kDone;
}

}  // namespace

void add_runs(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("runs", "Stored runs: list, show");
  command->require_subcommand(1);
  struct Arguments {
    std::string database = kDefaultDatabase;
    std::int64_t run = 0;
    bool json = false;
  };
  const auto add = [&](const char* name, const char* what) {
    auto arguments = std::make_shared<Arguments>();
    CLI::App* sub = command->add_subcommand(name, what);
    sub->add_option("--db", arguments->database, "SQLite file")->capture_default_str();
    sub->add_flag("--json", arguments->json, "Print one JSON object");
    return std::pair(sub, arguments);
  };
  auto [list_command, list_arguments] = add("list", "All runs, youngest first");
  list_command->callback([arguments = list_arguments, &exit_code] { exit_code = list(arguments->database, arguments->json); });
  auto [show_command, show_arguments] = add("show", "One run with its verdict and evidence");
  show_command->add_option("run", show_arguments->run, "Number of the run")->required();
  show_command->callback(
      [arguments = show_arguments, &exit_code] { exit_code = show(arguments->database, arguments->run, arguments->json); });
}

}  // namespace cpfit::cli
