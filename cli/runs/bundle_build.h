// From a scenario, its rates and a recipe to the bundle that says all of it. Export and import build it by the same function:
// what an import reads is compared, part by part, with what it builds from the bundle's own inputs.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/rates/rate_set.h"
#include "model/recipe/scenario.h"
#include "model/record/bundle.h"
#include "model/record/calibration.h"

namespace cpfit::cli {

struct BundleMaterial {
  const Scenario& scenario;
  const RateSet& rates;
  const Calibration& calibration;  // whose rates these are; the defaults' where none was named
  std::string tool_version;
  std::string role;  // "ship" or "chosen"
  Recipe recipe;
  std::vector<std::pair<std::string, Recipe>> controls;  // role and recipe
  NamedTexts missing_controls;
  BundledEquivalence equivalence;  // results; what the recipe needs is filled in
  NamedTexts inputs;               // hashes
};

/// Problems: a recipe that is not legal, a mesh beyond kMaxBundledRanks.
[[nodiscard]] Outcome<Bundle> make_bundle(BundleMaterial material);

/// A recipe on the scenario's cluster. Problems: what makes it illegal.
[[nodiscard]] Outcome<Candidate> evaluate_recipe(const Scenario& scenario, const RateSet& rates, const Recipe& recipe);
/// A control: also one of the controlled sweep, on a cluster of as many GPUs as it has.
[[nodiscard]] Outcome<Candidate> evaluate_control(const Scenario& scenario, const RateSet& rates, const Recipe& recipe);

/// "needs 61 GiB of 79 GiB, 4.1 s per step"; of a control beside what it is a control of.
[[nodiscard]] std::string figures_sentence(const Candidate& candidate);
[[nodiscard]] std::string control_sentence(const std::string& role, const Candidate& control, const Candidate& beside,
                                           const Requirements& requirements);

/// What the presets say of this scenario's GPU, cluster, model and of the recipe's framework: "gpus.toml: gpu[X].memory".
[[nodiscard]] NamedTexts preset_entries(const Scenario& scenario, const Recipe& recipe);
/// The names under which presets speak of them.
[[nodiscard]] std::set<std::string> preset_names(const Scenario& scenario, const std::string& framework);

}  // namespace cpfit::cli
