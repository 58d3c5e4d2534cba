// A calibration's surfaces as pictures: the curve a prediction follows along its natural axis, the range it was fitted on, its
// interval; measured points of the files it was fitted on, where these still lie there unchanged, with their residuals. Pure but
// for reading those files.
#pragma once

#include <QString>
#include <QStringList>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/rates/overlay.h"
#include "model/rates/rate_tables.h"
#include "model/record/calibration.h"

namespace cpfit::gui {

enum class SurfaceKind : std::uint8_t { kGemm, kAttention, kMemory, kCollective, kLink, kTraining, kLaunch, kOverlap };

/// Which row of which table a surface is: surfaces_of lists them in the order of the tables.
struct SurfacePlace {
  SurfaceKind kind = SurfaceKind::kGemm;
  std::size_t row = 0;
};
[[nodiscard]] SurfacePlace surface_place(const RateTables& tables, std::size_t surface);

struct RatePoint {
  std::size_t surface = 0;
  double x = 0, rate = 0;  // in the units of the curve
  double residual = 0;     // predicted over measured time, minus 1
  double spread = 0;       // relative, of repeated measurements; 0: not known
  std::int64_t line = 0;   // of its file
  std::size_t file = 0;    // of the calibration's sources
  std::string point;       // in words, see point_text
  bool excluded = false;   // measured, and left out of the fit
};

/// One calibration with what can be drawn of it.
struct KnownCalibration {
  Calibration calibration;
  RateTables tables;
  std::vector<Surface> surfaces;
  std::vector<RatePoint> points;
  QStringList remarks;  // why a file gave no points, what was left out of it; a sentence each
};
/// Problems of its rates become remarks. Reads the files when `with_points`.
[[nodiscard]] std::shared_ptr<const KnownCalibration> known_calibration(const Calibration& calibration, bool with_points);

struct RateCurve {
  QString x_label, y_label;
  std::vector<double> x, y;
  double valid_low = 0, valid_high = 0;  // fitted range of x
  double sigma = 0;                      // relative, one standard deviation
  QString held;                          // what the curve holds: "n 4,096, k 4,096"
  QString why_none;                      // a sentence where there is no curve to draw
};
[[nodiscard]] RateCurve rate_curve(const KnownCalibration& known, std::size_t surface);

/// Figures of surfaces that are single numbers: "×1.08 on GEMM time in training".
[[nodiscard]] QString surface_figures(const KnownCalibration& known, std::size_t surface);

/// One direction of a link of that name by the data sheets, bytes/s; 0: not known. "nic": one of 400 Gbit/s.
[[nodiscard]] double nominal_rate(const std::string& link);

/// Median over the surfaces that were scored on shapes kept out; none where no surface was.
[[nodiscard]] std::optional<double> hold_out_median(const std::vector<Surface>& surfaces);

/// "data sheets", the GPU, or the processor.
[[nodiscard]] QString device_text(const Calibration& calibration);
/// "today", "3 days", "4 months"; "–" where it is not known.
[[nodiscard]] QString age_text(std::int64_t created_unix_seconds, std::int64_t now_unix_seconds);
/// "●", "◐", "○" and the word.
[[nodiscard]] QString evidence_text(Evidence evidence);
/// Device, software, clocks, files with points and hash, what communicated, gaps: rich text.
[[nodiscard]] QString provenance_html(const KnownCalibration& known);

}  // namespace cpfit::gui
