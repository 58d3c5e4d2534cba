// Reading of planning runs: the list, a whole result, the evaluated candidates in an order.
// All read one state of the file, whatever other processes write meanwhile.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "db/store/run_store.h"

namespace cpfit {

enum class RunStatus : std::uint8_t { kRunning, kInterrupted, kDone };
[[nodiscard]] std::string_view name_of(RunStatus status);  // "running", "interrupted", "done"

struct RunSummary {
  RunId run{};
  std::string scenario_name, scenario_path;
  std::string tool_version, rule_set, rates_version;
  RunStatus status = RunStatus::kRunning;  // interrupted also when the writer is dead and could not say so
  std::int64_t started_unix_seconds = 0;
  std::optional<std::int64_t> finished_unix_seconds;
  std::int64_t stored_candidates = 0;  // evaluated ones
  std::string ship, control;           // recipe texts; empty when there is none
  std::optional<double> ship_step_seconds;
};

/// Youngest first.
[[nodiscard]] std::vector<RunSummary> list_runs(const Store& store);

/// What finish_run stored; of a run that is not done only the provenance. Problem "run.unknown" when there is no such run.
[[nodiscard]] Outcome<PlanResult> load_run(const Store& store, RunId run);

enum class CandidateOrder : std::uint8_t {
  kStored,                 // as the search went
  kStepSeconds,            // ascending
  kTokensPerSecondPerGpu,  // descending
  kDeviceBytes,            // ascending
  kGpus                    // ascending, then by step
};

struct CandidateQuery {
  CandidateOrder order = CandidateOrder::kStored;  // ties by recipe text
  std::optional<Fit> fit;                          // only candidates with this verdict
  std::int64_t offset = 0;
  std::int64_t limit = -1;  // -1: all
};

/// Candidates stored by the sink of `run`; none when there is no such run.
[[nodiscard]] std::vector<Candidate> candidates_of(const Store& store, RunId run, const CandidateQuery& query = {});

}  // namespace cpfit
