// The published controls of a recipe: the run's best recipe without CP, or where that fits too, it and a smaller CP degree that
// runs out of memory; and a larger degree that exposes its traffic or gets less done. Taken from what a stored run found; where
// it found none the reason is said.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/record/bundle.h"
#include "model/record/run.h"

namespace cpfit::cli {

struct ChosenControls {
  std::vector<std::pair<std::string, Recipe>> found;  // role and recipe
  NamedTexts missing;                                 // role -> why
};
[[nodiscard]] ChosenControls choose_controls(const PlanResult& run, const Candidate& beside);

}  // namespace cpfit::cli
