// What plan, simulate and curve share: loading a scenario with its rates, and hashing every input for the provenance.
#pragma once

#include <optional>
#include <string>

#include "cli/calibrate/choice.h"
#include "model/rates/rate_set.h"
#include "model/recipe/scenario.h"
#include "model/record/run.h"

namespace cpfit::cli {

struct Study {
  Scenario scenario;
  RateSet rates;
  std::optional<CalibrationUse> calibration = std::nullopt;  // none: the defaults
  std::optional<Calibration> chosen = std::nullopt;          // the calibration itself
};

/// Loads the scenario; on problems prints them and returns nothing (the caller ends with kBadInput).
/// `calibration` as --calibration has it (empty: the defaults), `database` where names are looked up; what to beware of goes to
/// standard error.
[[nodiscard]] std::optional<Study> load_study(const std::string& path, const std::string& calibration = "",
                                              const std::string& database = "");

/// Adds to the calibration's warnings, and to standard error, which groups of the recipe it was not measured with; no sentence
/// twice.
void warn_of_groups(Study& study, const Recipe& recipe);

/// A recipe as a person writes it on a command line: parse_recipe, and where the text does not name dp it takes the GPUs that tp,
/// cp and pp leave (if they divide).
[[nodiscard]] Outcome<Recipe> parse_recipe_on(const std::string& text, const Recipe& base, std::int64_t gpus);

/// The recipe to work on: `text` as --recipe has it, over the scenario's own choices; where there is none what `plan` would ship,
/// and where nothing fits what comes nearest to it.
struct ChosenRecipe {
  Recipe recipe;
  bool fits = true;  // false: the search found nothing that fits
};

/// Prints its problems; nothing then.
[[nodiscard]] std::optional<ChosenRecipe> choose_recipe(const std::optional<std::string>& text, const Study& study);

/// Prints problems of an argument such as --recipe, which the place of each then begins with.
void print_argument_problems(const std::string& argument, Problems problems);

/// Tool version, scenario text and SHA-256 of the scenario and of every preset file, as a run stores them.
[[nodiscard]] Provenance provenance_of(const Study& study);

}  // namespace cpfit::cli
