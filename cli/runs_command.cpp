// cpfit runs: what is stored.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <memory>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/plan_text.h"
#include "cli/proof.h"
#include "cli/terminal.h"
#include "db/query/runs.h"
#include "db/store/timeline_store.h"
#include "db/store/verification_store.h"
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

Json timelines_json(const std::vector<TimelineListing>& timelines) {
  Json rows = Json::array();
  for (const TimelineListing& row : timelines) {
    rows.push_back({{"timeline", static_cast<std::int64_t>(row.id)},
                    {"path", row.origin.scenario_path},
                    {"recipe", row.origin.recipe},
                    {"stored_unix_seconds", row.stored_unix_seconds},
                    {"step_seconds", static_cast<double>(row.step_picoseconds) * 1e-12},
                    {"lanes", row.lanes},
                    {"spans", row.spans},
                    {"tool_version", row.origin.tool_version},
                    {"rates", row.origin.rates_version}});
  }
  return rows;
}

void print_timelines(const std::vector<TimelineListing>& timelines) {
  if (timelines.empty()) return;
  Table table({{"timeline"}, {"stored (UTC)", false}, {"step"}, {"lanes"}, {"spans"}, {"scenario", false}});
  for (const TimelineListing& row : timelines) {
    table.row({std::to_string(static_cast<std::int64_t>(row.id)), date_of(row.stored_unix_seconds),
               print_time(Seconds(static_cast<double>(row.step_picoseconds) * 1e-12)), std::to_string(row.lanes),
               std::to_string(row.spans), row.origin.scenario_path});
  }
  fmt::print("\n{}", table.text());
}

Json verifications_json(const std::vector<VerificationListing>& verifications) {
  Json rows = Json::array();
  for (const VerificationListing& row : verifications) {
    rows.push_back({{"verification", static_cast<std::int64_t>(row.id)},
                    {"suite", row.suite},
                    {"backend", row.backend},
                    {"implementation", row.implementation},
                    {"implementation_version", row.implementation_version},
                    {"stored_unix_seconds", row.stored_unix_seconds},
                    {"cases", row.cases},
                    {"failed", row.failed},
                    {"controls", row.controls},
                    {"caught", row.caught},
                    {"tool_version", row.tool_version},
                    {"fixture_hash", row.fixture_hash}});
  }
  return rows;
}

void print_verifications(const std::vector<VerificationListing>& verifications) {
  if (verifications.empty()) return;
  Table table({{"verification"},
               {"stored (UTC)", false},
               {"whose attention", false},
               {"suite", false},
               {"backend", false},
               {"cases"},
               {"failed"},
               {"faults caught"}});
  for (const VerificationListing& row : verifications) {
    table.row({std::to_string(static_cast<std::int64_t>(row.id)), date_of(row.stored_unix_seconds),
               row.implementation + " " + row.implementation_version, row.suite, row.backend, std::to_string(row.cases),
               std::to_string(row.failed), row.controls == 0 ? "-" : fmt::format("{} of {}", row.caught, row.controls)});
  }
  fmt::print("\n{}", table.text());
}

int list(const std::string& database, bool json) {
  const Store store = open_store(database, {.access = StoreAccess::kRead});
  const std::vector<RunSummary> runs = list_runs(store);
  const std::vector<TimelineListing> timelines = list_timelines(store);
  const std::vector<VerificationListing> verifications = list_verifications(store);
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
    print_json({{"database", database},
                {"runs", rows},
                {"timelines", timelines_json(timelines)},
                {"verifications", verifications_json(verifications)}});
    return kDone;
  }
  Table table(
      {{"run"}, {"started (UTC)", false}, {"status", false}, {"scenario", false}, {"candidates"}, {"step"}, {"ship", false}});
  for (const RunSummary& run : runs) {
    table.row({std::to_string(static_cast<std::int64_t>(run.run)), date_of(run.started_unix_seconds),
               std::string(name_of(run.status)), run.scenario_name, std::to_string(run.stored_candidates),
               run.ship_step_seconds ? print_time(Seconds(*run.ship_step_seconds)) : "-",
               run.status != RunStatus::kDone ? "not finished"
               : run.ship.empty()             ? "nothing ships"
                                              : run.ship});
  }
  if (runs.empty()) {
    fmt::print("{} holds no runs yet. Make one: cpfit plan SCENARIO --db {}\n", database, database);
    print_timelines(timelines);
    print_verifications(verifications);
    return kDone;
  }
  fmt::print("{}", table.text());
  print_timelines(timelines);
  print_verifications(verifications);
  return kDone;
}

/// A run without a verdict: how far it came, and how to finish it. Done as far as showing goes.
int show_unfinished(const std::string& database, const RunSummary& run, bool json) {
  const auto id = static_cast<std::int64_t>(run.run);
  if (json) {
    print_json({{"run", id},
                {"status", name_of(run.status)},
                {"verdict", nullptr},
                {"candidates_stored", run.stored_candidates},
                {"provenance", {{"scenario", run.scenario_path}, {"tool_version", run.tool_version}}}});
    return kDone;
  }
  const std::string repair = run.status == RunStatus::kRunning
                                 ? std::string("Another process is writing it; look again later.")
                                 : fmt::format("Continue it: cpfit plan {} --db {}", run.scenario_path, database);
  fmt::print("Run {} of {}: {}, {} candidates stored, no verdict yet.\n{}\n", id, run.scenario_path, name_of(run.status),
             run.stored_candidates, repair);
  return kDone;
}

int show(const std::string& database, std::int64_t id, bool json) {
  const Store store = open_store(database, {.access = StoreAccess::kRead});
  const Outcome<PlanResult> result = load_run(store, RunId{id});
  if (!result.ok()) {
    print_problems(result.problems());
    return kBadInput;
  }
  const std::vector<RunSummary> runs = list_runs(store);
  const auto run = std::find_if(runs.begin(), runs.end(), [&](const RunSummary& row) { return row.run == RunId{id}; });
  if (run != runs.end() && run->status != RunStatus::kDone) return show_unfinished(database, *run, json);
  const Outcome<Scenario> scenario = read_scenario(result->provenance.scenario_text, result->provenance.scenario_path);
  std::optional<ProofBook> proofs;  // a scenario whose files have gone leaves nothing to look up
  if (scenario.ok()) proofs.emplace(*scenario, proofs_of(store));
  if (json) {
    const ProofSource proof_of = proofs ? proof_source(*proofs) : ProofSource();
    Json body = to_json(*result, id, nullptr, proof_of);
    body["status"] = name_of(RunStatus::kDone);
    print_json(body);
    return kDone;
  }
  const Provenance& origin = result->provenance;
  fmt::print("Run {} of {}: {}\n{}\n", id, database, origin.scenario_path,
             wrapped(fmt::format("cpfit {}, rules {}, rates {}", origin.tool_version, origin.rule_set, origin.rates_version), 2));
  const bool ships = proofs && result->ships;
  fmt::print("{}", plan_text(*result, ships ? proof_text(proofs->of(result->ship.recipe), database) : ""));
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
    sub->add_option("--db", arguments->database, "SQLite file")->capture_default_str()->check(file_name());
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
