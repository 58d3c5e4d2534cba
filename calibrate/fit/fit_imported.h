// Imported files in, the tables of a calibration out: one curve per device (or link) and kind of kernel, robust, weighted by what
// each measurement scattered by, scored on shapes kept out. What had too few points is listed with its reason, and so is what
// nobody measured: there the defaults stand in, marked assumed.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "calibrate/fit/fit_rates.h"
#include "calibrate/read/imported.h"
#include "model/record/calibration.h"

namespace cpfit {

struct ImportedFit {
  RateTables tables;
  std::vector<std::string> left_out;  // as FitReport
  std::vector<CalibrationGap> gaps;   // surfaces and shapes that a prediction may want and no point covers
};

/// GPUs that `gpus` does not know are described by what was measured on them: their peaks are the best rates seen.
[[nodiscard]] ImportedFit fit_imported(const std::vector<ImportedFile>& files, std::span<const Gpu> gpus);

/// The device of a measured host or unknown GPU as a Gpu: peaks from the best measured point of each kind, no memory size.
/// `link` is its scale-up link; the rate of that link is the best measured over it.
[[nodiscard]] Gpu device_measured(const std::string& name, const std::string& generation,
                                  const std::vector<const KernelMeasurement*>& rows, const std::string& link);

/// The fit as a record: who, from what, on which machine. `name` may be empty: device and software then make one.
[[nodiscard]] Calibration calibration_of(const ImportedFit& fit, const std::vector<ImportedFile>& files, std::string name,
                                         const std::string& tool_version, std::int64_t unix_seconds);

}  // namespace cpfit
