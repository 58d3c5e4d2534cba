// cpfit runs show: one run with its verdict and evidence.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/plan_text.h"
#include "cli/runs/commands.h"
#include "cli/terminal.h"
#include "cli/verify/proof.h"
#include "db/query/runs.h"
#include "db/store/verification_store.h"
#include "model/quantity/counted.h"

namespace cpfit::cli {

namespace {

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
  fmt::print("Run {} of {}: {}, {} stored, no verdict yet.\n{}\n", id, run.scenario_path, name_of(run.status),
             counted(run.stored_candidates, "candidate"), repair);
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

void add_runs_show(CLI::App& runs, int& exit_code) {
  auto arguments = std::make_shared<RunsArguments>();
  auto run = std::make_shared<std::int64_t>(0);
  CLI::App* command = runs.add_subcommand("show", "One run with its verdict and evidence");
  add_runs_options(*command, *arguments);
  command->add_option("run", *run, "Number of the run")->required();
  command->callback([arguments, run, &exit_code] { exit_code = show(arguments->database, *run, arguments->json); });
}

}  // namespace cpfit::cli
