#include "db/store/run_recorder.h"

#include <optional>

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
