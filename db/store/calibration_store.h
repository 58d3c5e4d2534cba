// Calibrations in a store: each once, by the hash of its content, with its files, its surfaces and what it does not cover.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "db/store/store.h"
#include "model/rates/overlay.h"
#include "model/record/calibration.h"

namespace cpfit {

struct SavedCalibration {
  std::int64_t row = 0;
  bool known = false;  // the same content was there before: nothing was written, its name and time stay
};
/// One transaction. `surfaces`: those of its rates, for queries.
[[nodiscard]] SavedCalibration save_calibration(Store& store, const Calibration& calibration,
                                                const std::vector<Surface>& surfaces);

/// Youngest first; none in a database from before there were any.
[[nodiscard]] std::vector<Calibration> list_calibrations(const Store& store);

/// By name (of several the youngest) or by the first digits of the id, at least four. Problems: "calibration.unknown" (with the
/// nearest name), "calibration.ambiguous".
[[nodiscard]] Outcome<Calibration> find_calibration(const Store& store, const std::string& id_or_name);

}  // namespace cpfit
