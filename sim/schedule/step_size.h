// How large the program of a step will be, told before it is written: what bounds the shortlist that the planner confirms, and
// what refuses a simulation that would not fit into memory.
#pragma once

#include <cstdint>

#include "sim/schedule/step_schedule.h"

namespace cpfit::schedule {

/// Activities of the step's program, counted from the layers, ring steps, micro-batches and ranks that it would hold; unfolded
/// right within a factor of two, folded an upper bound rather than a count. The recipe must be legal.
[[nodiscard]] std::int64_t estimated_activities(const ScreenContext& context, const Recipe& recipe, const StepOptions& options);

}  // namespace cpfit::schedule
