#include "db/store/run_recorder.h"

#include <optional>

#include "db/store/bundle_store.h"
#include "db/store/calibration_store.h"
#include "model/presets/embedded.h"
#include "model/rates/overlay.h"

namespace cpfit {

namespace {

constexpr std::size_t kBatch = 4096;

}  // namespace

RunRecorder::RunRecorder(const std::string& path, const Provenance& provenance, const StoreOptions& options)
    : store_(open_store(path, options)) {
  if (std::optional<ResumableRun> earlier = find_resumable(store_, provenance); earlier && resume_run(store_, earlier->run)) {
    run_ = earlier->run;
    stored_ = std::move(earlier->recipes);
  } else {
    run_ = create_run(store_, provenance);
  }
  sink_ = candidate_sink(store_, run_);
}

void RunRecorder::keep_inputs(const Scenario& scenario, const Calibration* calibration) {
  std::vector<InputText> texts;
  for (const ScenarioInput& input : scenario.inputs) texts.push_back({input.path, input.text});
  for (const EmbeddedFile& file : embedded_files()) texts.push_back({std::string(file.name), std::string(file.text)});
  save_inputs(store_, texts);
  if (calibration == nullptr || calibration->assumed) return;
  const Outcome<RateTables> tables = tables_of(*calibration);
  if (tables.ok()) (void)save_calibration(store_, *calibration, surfaces_of(*tables));
}

void RunRecorder::receive(const std::vector<Candidate>& batch) {
  for (const Candidate& candidate : batch) {
    if (stored_.empty() || !stored_.contains(to_text(candidate.recipe))) waiting_.push_back(candidate);
  }
  if (waiting_.size() >= kBatch) flush();
}

void RunRecorder::flush() {
  if (waiting_.empty()) return;
  sink_(waiting_);
  waiting_.clear();
}

void RunRecorder::finish(const PlanResult& result) {
  flush();
  finish_run(store_, run_, result);
}

void RunRecorder::interrupt() {
  try {
    flush();
  } catch (const Error&) {
    // A full disk may still take one word; the run can then be continued elsewhere.
    interrupt_run(store_, run_);
    throw;
  }
  interrupt_run(store_, run_);
}

}  // namespace cpfit
