// A step at timeline fidelity as people read it: its parts beside the screen's (or beside the quiet run's), where communication
// is hidden and exposed, the critical path, the busiest links.
#pragma once

#include <string>

#include "cli/simulate/timeline.h"

namespace cpfit::cli {

[[nodiscard]] std::string timeline_text(const SimulatedStep& step);

}  // namespace cpfit::cli
