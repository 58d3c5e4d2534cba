// Which points the next fit leaves out and why, and what the fit without them changed: what the calibration view decides, without
// a widget.
#pragma once

#include <QString>
#include <QStringList>
#include <cstdint>
#include <optional>
#include <vector>

#include "gui/calibration/rate_curves.h"

namespace cpfit::gui {

/// A shown point as a calibration names it; without a reason.
[[nodiscard]] ExcludedPoint as_exclusion(const KnownCalibration& known, const RatePoint& point);
/// Where the same point stands among `excluded`, whatever the reason; -1: nowhere.
[[nodiscard]] std::ptrdiff_t find_exclusion(const std::vector<ExcludedPoint>& excluded, const ExcludedPoint& point);

/// The points of a surface from left to right; indices of known.points.
[[nodiscard]] std::vector<std::size_t> points_in_order(const KnownCalibration& known, std::size_t surface);
/// The point `by` places right of `from` (left: negative), at the ends the outermost; without `from` the first from that side.
[[nodiscard]] std::optional<std::size_t> stepped_point(const std::vector<std::size_t>& order, std::optional<std::size_t> from,
                                                       int by);

/// "line 14: send_recv of 65536 bytes …: 3.61 GB/s, predicted time +2.1 % off".
[[nodiscard]] QString point_sentence(const KnownCalibration& known, const RatePoint& point);

/// One surface before and after a fit; one of the two may be missing.
struct SurfaceChange {
  std::string device, name;
  std::optional<FitQuality> before, after;
};
/// Surfaces whose points or errors changed, in the order of `before`; then those that only the new fit has.
[[nodiscard]] std::vector<SurfaceChange> surface_changes(const std::vector<Surface>& before, const std::vector<Surface>& after);
/// "shared memory, send_recv on 2: 13 → 11 points, hold-out median 0.4 % → 0.2 %, 90 % within 88 % → 0.5 %".
[[nodiscard]] QString change_sentence(const SurfaceChange& change);

/// Reasons that are offered; a person may write another.
[[nodiscard]] QStringList usual_reasons();

}  // namespace cpfit::gui
