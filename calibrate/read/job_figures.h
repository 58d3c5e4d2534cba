// From the files of one job to figures that a prediction has too. What each rests on is said with it; what cannot be told is left
// out with a remark, never guessed.
//
//   step time        as logged; torchtitan logs tokens/s per GPU, DeepSpeed samples/s: with tokens and GPUs of the job these are
//   times memory           of a log per pipeline stage, the highest of its ranks; of a snapshot the replayed peak. A snapshot's
//   rank stands in
//                    its file's name ("rank3")
//   exposed          per profiler step ("ProfilerStep#"), median over them, the first of three or more left out; without marks
//   the whole
//                    trace over the steps that the caller says it holds. By axis where the process groups say it, or where
//                    only one axis of the recipe has more than one rank
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "calibrate/read/job_log.h"
#include "calibrate/read/job_steps.h"
#include "calibrate/read/memory_snapshot.h"
#include "calibrate/read/trace_kernels.h"
#include "model/recipe/recipe.h"
#include "model/recipe/training.h"
#include "model/record/measured_run.h"

namespace cpfit {

struct JobFiles {
  std::vector<JobLog> logs;  // of ranks of one job
  std::vector<KernelTrace> traces;
  std::vector<MemorySnapshot> snapshots;
};

/// What the job ran, as far as it is known beside its files.
struct JobShape {
  Recipe recipe;
  Training training;
};

struct JobReading {
  std::int64_t warm_up = kWarmUpSteps;
  std::int64_t trace_steps = 0;  // that a trace without marks holds; 0: not said
};

/// Figures come without predictions. The log with the most steps that count stands for the job's time; memory counts from all.
[[nodiscard]] MeasuredJob measured_job(const JobFiles& files, const std::optional<JobShape>& shape,
                                       const JobReading& reading = {});

}  // namespace cpfit
