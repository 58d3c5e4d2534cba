// --calibration of plan, simulate and curve: which calibration a person means. What of it is used: sim/plan/study_rates.h.
#pragma once

#include <optional>
#include <string>

#include "cli/json.h"
#include "model/record/calibration.h"
#include "sim/plan/study_rates.h"

namespace cpfit::cli {

/// `which`: a calibration file (or rates.toml); DATABASE:NAME; or NAME or the first digits of an id, in `database`. "defaults"
/// names what ships. Problems: calibration.unknown and those of reading. Throws Error of the store.
[[nodiscard]] Outcome<Calibration> choose_calibration(const std::string& which, const std::string& database);

/// One line for people, and the object of --json; null without a calibration.
[[nodiscard]] std::string calibration_text(const std::optional<CalibrationUse>& use);
[[nodiscard]] Json calibration_json(const std::optional<CalibrationUse>& use);

}  // namespace cpfit::cli
