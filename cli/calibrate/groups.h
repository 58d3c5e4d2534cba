// Whether a calibration was measured with the groups that a recipe runs: as many ranks, over the same links. What was not is
// computed from the defaults' curves and those of other sizes, and that is said.
#pragma once

#include <string>
#include <vector>

#include "model/recipe/scenario.h"
#include "model/record/calibration.h"

namespace cpfit::cli {

/// Sentences, one for each axis and link whose collectives the calibration knows with other sizes only; none for the defaults.
[[nodiscard]] std::vector<std::string> group_warnings(const Calibration& calibration, const Scenario& scenario,
                                                      const Recipe& recipe);

}  // namespace cpfit::cli
