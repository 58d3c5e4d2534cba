// A scenario with the files it names in hand: a stored run or a bundle is read again on a machine where those files never were.
#pragma once

#include <string>
#include <vector>

#include "model/recipe/scenario.h"

namespace cpfit {

/// As read_scenario(text, path), but config.json and topology files are found among `files` by their path and nowhere else: no
/// file is opened. Problem "scenario.file_not_given" for one that is not there.
[[nodiscard]] Outcome<Scenario> read_scenario(const std::string& text, const std::string& path,
                                              const std::vector<ScenarioInput>& files);

}  // namespace cpfit
