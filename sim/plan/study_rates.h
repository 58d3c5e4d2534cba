// What a study is computed from: which of a calibration's rates hold for its cluster, and the hashes by which a run is known
// again. Rows of another GPU are never used; where nothing is left of a calibration it is a problem.
#pragma once

#include <string>
#include <vector>

#include "model/rates/rate_set.h"
#include "model/recipe/scenario.h"
#include "model/record/calibration.h"
#include "model/record/run.h"

namespace cpfit {

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

/// Tool version, scenario text and SHA-256 of the scenario, of the files it names and of every preset file, as a run stores them.
/// `calibration` null: the defaults.
[[nodiscard]] Provenance provenance_of(const Scenario& scenario, const RateSet& rates, const std::string& tool_version,
                                       const CalibrationUse* calibration);

}  // namespace cpfit
