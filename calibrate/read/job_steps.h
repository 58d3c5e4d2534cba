// Which logged steps count, and what they say together.
//
// Left out, in this order, each with its reason:
//   another global batch  than most steps of the attempt have (batch ramp-up)
//   skipped updates       a step whose update was skipped (loss scale, NaN) did less work
//   warm-up               the first `warm_up` logged steps of an attempt: compilation, autotuning, first allocations. Of attempts
//   with
//                         fewer than 2 * warm_up + 1 steps only the first, of a single step nothing
//   outliers              |x - median| above 5 * 1.4826 * the median absolute deviation, and above 2 % of the median (logs round)
// Of several attempts (restarts) the one with the most steps that count stands for the job, of equals the last.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "calibrate/read/job_log.h"
#include "model/record/measured_run.h"

namespace cpfit {

inline constexpr std::int64_t kWarmUpSteps = 3;

/// Median with its 95 % interval by order statistics (of fewer than 6 the range). `values` is not empty.
[[nodiscard]] MeasuredFigure figure_of(RunFigure figure, std::vector<double> values, std::string basis);

/// Indices that `values` keeps when its outliers are left out by the rule above.
[[nodiscard]] std::vector<std::size_t> without_outliers(const std::vector<double>& values);

struct CountedSteps {
  std::size_t attempt = 0;     // index of the attempt that stands for the job
  std::vector<JobStep> steps;  // those that count
  std::vector<LeftOutStep> left_out;
  std::vector<std::string> remarks;  // other attempts, with their medians
  std::int64_t global_batch = 0;     // of the steps that count; 0: not logged
};

/// `log` has at least one step.
[[nodiscard]] CountedSteps count_steps(const JobLog& log, std::int64_t warm_up = kWarmUpSteps);

}  // namespace cpfit
