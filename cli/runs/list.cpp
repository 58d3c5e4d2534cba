// cpfit runs list: everything that a database keeps.
#include <fmt/format.h>

#include <memory>

#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/runs/commands.h"
#include "cli/terminal.h"
#include "db/query/runs.h"
#include "db/store/bundle_store.h"
#include "db/store/timeline_store.h"
#include "db/store/verification_store.h"
#include "model/quantity/text.h"

namespace cpfit::cli {

namespace {

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

Json bundles_json(const std::vector<BundleListing>& bundles) {
  Json rows = Json::array();
  for (const BundleListing& row : bundles) {
    rows.push_back({{"bundle", row.sha256},
                    {"scenario", row.scenario_name},
                    {"recipe", row.recipe},
                    {"stored_unix_seconds", row.stored_unix_seconds},
                    {"gpus", row.gpus},
                    {"step_seconds", row.step_seconds},
                    {"tool_version", row.tool_version},
                    {"rates", row.rates_version}});
  }
  return rows;
}

void print_bundles(const std::vector<BundleListing>& bundles) {
  if (bundles.empty()) return;
  Table table({{"bundle", false}, {"stored (UTC)", false}, {"scenario", false}, {"GPUs"}, {"step"}, {"recipe", false}});
  for (const BundleListing& row : bundles) {
    const Outcome<Recipe> recipe = parse_recipe(row.recipe, Recipe{});
    table.row({row.sha256.substr(0, 12), date_of(row.stored_unix_seconds), row.scenario_name, std::to_string(row.gpus),
               print_time(Seconds(row.step_seconds)), recipe.ok() ? to_text(*recipe) : row.recipe});
  }
  fmt::print("\n{}", table.text());
}

int list(const std::string& database, bool json) {
  const Store store = open_store(database, {.access = StoreAccess::kRead});
  const std::vector<RunSummary> runs = list_runs(store);
  const std::vector<TimelineListing> timelines = list_timelines(store);
  const std::vector<VerificationListing> verifications = list_verifications(store);
  const std::vector<BundleListing> bundles = list_bundles(store);
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
                {"verifications", verifications_json(verifications)},
                {"bundles", bundles_json(bundles)}});
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
    print_bundles(bundles);
    return kDone;
  }
  fmt::print("{}", table.text());
  print_timelines(timelines);
  print_verifications(verifications);
  print_bundles(bundles);
  return kDone;
}

}  // namespace

void add_runs_list(CLI::App& runs, int& exit_code) {
  auto arguments = std::make_shared<RunsArguments>();
  CLI::App* command = runs.add_subcommand("list", "All runs, timelines, verifications and bundles, youngest first");
  add_runs_options(*command, *arguments);
  command->callback([arguments, &exit_code] { exit_code = list(arguments->database, arguments->json); });
}

}  // namespace cpfit::cli
