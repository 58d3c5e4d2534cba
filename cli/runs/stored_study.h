// What a stored run or bundle was computed from, put together again as it was: its scenario with the files it named, its
// calibration, its recipes and their figures. Everything that asks later whether a recipe still holds begins here.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "db/query/runs.h"
#include "model/rates/rate_set.h"
#include "model/recipe/scenario.h"
#include "model/record/bundle.h"
#include "model/record/calibration.h"

namespace cpfit::cli {

/// "7" or "run:7", "bundle:3f2a", "verification:2".
struct Reference {
  enum class Kind : std::uint8_t { kRun, kBundle, kVerification };
  Kind kind = Kind::kRun;
  std::int64_t number = 0;  // of a run or verification
  std::string digits;       // of a bundle
};
[[nodiscard]] Outcome<Reference> parse_reference(const std::string& word);
[[nodiscard]] std::string name_of(const Reference& reference);  // "run 7", "bundle 3f2a..."

struct StoredStudy {
  std::string label;  // "run 7"
  Provenance provenance;
  std::optional<Scenario> scenario;  // as it was; nothing where a file it named is neither kept nor unchanged on disk
  Problems scenario_trouble;         // why there is none
  bool calibrated = false;           // a calibration was named
  std::string calibration_name, calibration_id;
  std::optional<Calibration> calibration;  // as it was; nothing where it is not in the database
  std::vector<BundledRecipe> predicted;    // ship or chosen first, then the controls; figures as stored
  std::string status = "done";             // of a run
  std::optional<Bundle> bundle;            // where it is one
  std::optional<PlanResult> plan;          // where it is a run
};

/// Problems: no such run or bundle.
[[nodiscard]] Outcome<StoredStudy> stored_study(const Store& store, const Reference& reference);
[[nodiscard]] Outcome<StoredStudy> study_of(Bundle bundle, const std::string& label);

/// The rates of a calibration for a scenario; of the defaults that another cpfit shipped, those. Null: this cpfit's defaults.
/// Problems as calibrated_rates.
[[nodiscard]] Outcome<RateSet> rates_of(const Calibration* calibration, const Scenario& scenario,
                                        std::vector<std::string>* warnings = nullptr);

/// Whether an input of a provenance is a preset file of cpfit, a calibration, the scenario itself, or a file it names.
enum class InputKind : std::uint8_t { kScenario, kPreset, kCalibration, kFile };
[[nodiscard]] InputKind input_kind(const std::string& name);

}  // namespace cpfit::cli
