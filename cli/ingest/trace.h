// What a profiler's trace of the predicted step would show as exposed: the step simulated on the timeline, and its kernels and
// messages taken by the same rule as a recorded trace's (calibrate/read/trace_kernels.h). A message counts from when it was
// posted: its kernel is on the GPU while it waits for its peer.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/evaluate/compare_job.h"

namespace cpfit::cli {

struct PredictedTraces {
  std::map<std::int64_t, ExposedTimes> of_rank;  // -1: of a rank not named, the one that ends last
  std::string note;                              // why there is none, or what they do not cover
};

/// Of the ranks that the figures were measured on. `scenario.base` is the recipe. `simulated`: the figures are of traces that
/// `cpfit simulate` wrote, in which a message begins when it moves.
[[nodiscard]] PredictedTraces predicted_traces(const Scenario& scenario, const RateSet& rates,
                                               const std::vector<MeasuredFigure>& figures, bool simulated);

}  // namespace cpfit::cli
