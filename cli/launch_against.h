// A job's arguments beside the scenario that they are read with.
#pragma once

#include "model/launch/launch.h"
#include "model/recipe/scenario.h"

namespace cpfit::cli {

/// What the job says otherwise than the scenario asks: length, batch, model, order of the GPUs (of which a configuration file
/// says nothing, a script does). Codes "launch.other_*".
[[nodiscard]] Problems against_scenario(LaunchFormat format, const LaunchReading& reading, const Scenario& scenario);

}  // namespace cpfit::cli
