// Measured ring attention steps (ring_step of cpfit-bench) beside their prediction: the step's time, and of it what messages cost
// beyond the computing, which is what a plan with context parallelism stands or falls with.
#pragma once

#include <array>
#include <string>

#include "model/quantity/problem.h"
#include "model/record/measurement.h"
#include "model/record/validation.h"
#include "sim/evaluate/ring_step.h"

namespace cpfit {

/// kStepSeconds and kExposedSeconds of one step. The exposed time's interval is the step's: its half width in seconds is the
/// same, because what a step is off by may all lie in what is exposed. `line`: the point's ordinal, from 1.
[[nodiscard]] std::array<ValidationRow, 2> ring_rows(const MeasuredPoint& point, const RingStepPrediction& predicted,
                                                     std::int64_t line, const std::string& group);

/// All steps of a file that were measured. A step that is not predicted is skipped with the reason; where `rates` is a problem
/// all of them are.
[[nodiscard]] ValidationResult evaluate_ring_steps(const MeasurementFile& file, const std::string& path,
                                                   const Outcome<RingRates>& rates);

}  // namespace cpfit
