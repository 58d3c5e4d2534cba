// Writing a search as it goes: an interrupted run of the same inputs is continued, its candidates are not stored twice, batches
// are large enough to be fast. For one thread at a time.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_set>
#include <vector>

#include "db/store/run_store.h"
#include "model/recipe/scenario.h"
#include "model/record/calibration.h"

namespace cpfit {

class RunRecorder {
 public:
  /// Opens the store and makes this process the writer of a run: the youngest interrupted one of exactly this provenance, else a
  /// new one. Throws Error of the store, as all below do; whole batches stored before stay.
  RunRecorder(const std::string& path, const Provenance& provenance, const StoreOptions& options = {});

  [[nodiscard]] RunId run() const { return run_; }
  /// Candidates that an earlier attempt had stored; 0: the run is new, or had stored none.
  [[nodiscard]] std::size_t continued() const { return stored_.size(); }

  /// Keeps the texts of what the run is computed from, so that a later cpfit can say what changed in them: the scenario's files,
  /// the presets, the calibration (null: the defaults).
  void keep_inputs(const Scenario& scenario, const Calibration* calibration);

  void receive(const std::vector<Candidate>& batch);
  void finish(const PlanResult& result);
  /// What was received is stored, and the run can be continued.
  void interrupt();

 private:
  void flush();
  Store store_;
  RunId run_{};
  CandidateSink sink_;
  std::unordered_set<std::string> stored_;
  std::vector<Candidate> waiting_;
};

}  // namespace cpfit
