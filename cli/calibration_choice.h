// --calibration of plan, simulate and curve: which calibration a person means, what of it speaks of the scenario's cluster, and
// what to beware of. Rows of another GPU are never used; where nothing is left the command ends with a problem.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/json.h"
#include "model/rates/rate_set.h"
#include "model/recipe/scenario.h"
#include "model/record/calibration.h"

namespace cpfit::cli {

/// `which`: a calibration file (or rates.toml); DATABASE:NAME; or NAME or the first digits of an id, in `database`. "defaults"
/// names what ships. Problems: calibration.unknown and those of reading. Throws Error of the store.
[[nodiscard]] Outcome<Calibration> choose_calibration(const std::string& which, const std::string& database);

struct CalibrationUse {
  std::string id, name;
  bool assumed = false;
  std::vector<std::string> used;      // surfaces: "gemm bf16", "all_gather on 8 over nvlink4"
  std::vector<std::string> warnings;  // sentences: stale, another GPU's rows left away, group sizes not measured
};

struct CalibratedRates {
  RateSet rates;  // the calibration's rows over the defaults
  CalibrationUse use;
};

/// Problem "calibration.other_cluster" where nothing of the calibration speaks of this cluster.
[[nodiscard]] Outcome<CalibratedRates> calibrated_rates(const Calibration& calibration, const Scenario& scenario);

/// One line for people, and the object of --json; null without a calibration.
[[nodiscard]] std::string calibration_text(const std::optional<CalibrationUse>& use);
[[nodiscard]] Json calibration_json(const std::optional<CalibrationUse>& use);

}  // namespace cpfit::cli
