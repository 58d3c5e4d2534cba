// Writing of planning runs: a run is created, receives evaluated candidates batch by batch while the search goes on, and is
// finished with its result. A run that a killed process left behind is found again by what it was computed from, and continued.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>

#include "db/store/store.h"
#include "model/record/run.h"

namespace cpfit {

enum class RunId : std::int64_t {};

/// A new run with status `running`, written by this process.
[[nodiscard]] RunId create_run(Store& store, const Provenance& provenance);

/// Stores each batch in one transaction: after a crash the store holds whole batches only. Batches of a thousand candidates or
/// more are fastest. The sink must not outlive the store. Throws Error also when another process has taken the run over.
[[nodiscard]] CandidateSink candidate_sink(Store& store, RunId run);

/// Stores the result and sets status `done`, in one transaction; marks ship and control among the candidates stored before.
/// Expects that the result's provenance is the one the run was created with. Recipes without link loads leave no trace.
void finish_run(Store& store, RunId run, const PlanResult& result);

/// For a search that was stopped by its user or by an error: what is stored stays and can be continued.
void interrupt_run(Store& store, RunId run);

struct ResumableRun {
  RunId run{};
  std::unordered_set<std::string> recipes;  // to_text of those whose candidates are stored: the search can skip them
};

/// The youngest unfinished run computed from exactly this provenance (names and paths of files do not matter, their content
/// does) that no living process writes. A writer on another host counts as living until it has been silent for kWriterSilence.
[[nodiscard]] std::optional<ResumableRun> find_resumable(const Store& store, const Provenance& provenance);
inline constexpr std::chrono::seconds kWriterSilence{600};  // many times the longest pause between batches

/// Makes this process the writer of an unfinished run; false when another one has become its writer, or finished it, meanwhile.
[[nodiscard]] bool resume_run(Store& store, RunId run);

}  // namespace cpfit
