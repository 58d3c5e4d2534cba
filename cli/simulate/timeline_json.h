// What simulate --json says of a step at timeline fidelity.
#pragma once

#include "cli/json.h"
#include "cli/simulate/timeline.h"

namespace cpfit::cli {

/// Adds to a candidate's object: links (of the timeline), timeline, and where the step was disturbed disturbances, quiet and
/// link_changes.
void add_timeline(Json& candidate, const SimulatedStep& step);

}  // namespace cpfit::cli
