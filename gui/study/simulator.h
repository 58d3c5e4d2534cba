// The planner and the simulator for code that also includes Qt: one of their words, `slots`, is a macro there.
#pragma once

#pragma push_macro("slots")
#undef slots
#include "sim/plan/detail.h"            // IWYU pragma: export
#include "sim/plan/explain.h"           // IWYU pragma: export
#include "sim/plan/lengths.h"           // IWYU pragma: export
#include "sim/plan/plan.h"              // IWYU pragma: export
#include "sim/plan/sources.h"           // IWYU pragma: export
#include "sim/plan/step_memory.h"       // IWYU pragma: export
#include "sim/plan/step_timeline.h"     // IWYU pragma: export
#include "sim/plan/study_rates.h"       // IWYU pragma: export
#include "sim/plan/timeline_summary.h"  // IWYU pragma: export
#include "sim/plan/workbench.h"         // IWYU pragma: export
#include "sim/schedule/step_size.h"     // IWYU pragma: export
#include "sim/timeline/lanes.h"         // IWYU pragma: export
#include "sim/timeline/trace_export.h"  // IWYU pragma: export
#pragma pop_macro("slots")
