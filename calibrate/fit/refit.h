// A fit made again without some of its points: the files that a calibration names are read once more, unchanged or not at all,
// the points are taken out, each with its reason, and what the fit says now is a new version of the calibration.
#pragma once

#include <string>
#include <vector>

#include "calibrate/read/imported.h"
#include "model/record/calibration.h"

namespace cpfit {

/// A measured point in words, its sizes in full: "attention fp32 backward, q 512, kv 1024, 8 heads of 64, full". The same kernel
/// at the same sizes reads the same; the line of its file tells repeats apart.
[[nodiscard]] std::string point_text(const KernelMeasurement& row);

/// Takes points out of the rows of their files; each stands among the rows left out then, with its reason. Problems:
/// "exclude.reason" where it is not said why, "exclude.unknown" where no file has that point.
[[nodiscard]] Outcome<std::vector<ImportedFile>> without_points(std::vector<ImportedFile> files,
                                                                const std::vector<ExcludedPoint>& excluded);

struct Refit {
  Calibration calibration;              // as before but for rates, gaps, points counted and `excluded`; a name as before
  std::vector<std::string> left_out;    // groups with too few points for a curve, as ImportedFit
  std::vector<std::string> taken_over;  // rows between nodes whose raw rate the files do not say: as they were before
};

/// `excluded` are all points that the new version leaves out, those that `before` left out included where they still should be.
/// Problems: "refit.source" where a file is not there or was changed since, "refit.nothing" where no curve is left, and those of
/// the reader and of without_points.
[[nodiscard]] Outcome<Refit> refit_without(const Calibration& before, const std::vector<ExcludedPoint>& excluded,
                                           const std::string& tool_version, std::int64_t unix_seconds);

}  // namespace cpfit
