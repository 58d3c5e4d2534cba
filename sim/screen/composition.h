// How uncertain a step is beyond its parts.
#pragma once

#include <cmath>

#include "model/record/candidate.h"

namespace cpfit {

/// Putting a step together from its parts is itself uncertain; relative standard deviations, independent of the operators'. What
/// runs on the GPU is known better than what waits: exposed communication is a difference of two larger times, and depends on
/// launch order, host and neighbours. From the residuals of `cpfit validate`: with these, 91 % of the runs on lines of even
/// number lie inside their 90 % interval and 92 % of those on odd ones; the sources that constants were fitted on (production
/// tables, nanotron's sweep) 95 %, vTrain's 85 %.
inline constexpr double kComputeSigma = 0.085;  // of kernels, bubble and optimizer
inline constexpr double kExposedSigma = 0.21;   // of exposed communication and exposed launches

inline constexpr double kNinetyPercent = 1.645;  // standard deviations of a two-sided 90 % interval

/// Of the whole step. Errors of one kind go together.
[[nodiscard]] inline double composition_sigma(const TimeBreakdown& time) {
  const double step = time.step().value();
  if (step <= 0) return kComputeSigma;
  const double exposed = (time.exposed_cp + time.exposed_tp + time.exposed_pp + time.exposed_dp + time.launch).value() / step;
  const double computed = kComputeSigma * (1 - exposed), waited = kExposedSigma * exposed;
  return std::sqrt(computed * computed + waited * waited);
}

}  // namespace cpfit
