#include "gui/calibration/exclusions.h"

#include <QCoreApplication>
#include <algorithm>

#include "gui/look/figures.h"

namespace cpfit::gui {

namespace {

QString said(const char* text) { return QCoreApplication::translate("Calibration", text); }

const Surface* same_surface(const std::vector<Surface>& surfaces, const Surface& surface) {
  const auto is = [&](const Surface& other) { return other.device == surface.device && other.name == surface.name; };
  const auto found = std::ranges::find_if(surfaces, is);
  return found == surfaces.end() ? nullptr : &*found;
}

bool same_figures(const FitQuality& a, const FitQuality& b) {
  return a.rows == b.rows && a.held_out == b.held_out && a.median_error == b.median_error && a.p90_error == b.p90_error;
}

}  // namespace

ExcludedPoint as_exclusion(const KnownCalibration& known, const RatePoint& point) {
  return {known.calibration.sources[point.file].sha256, point.line, point.point, {}};
}

std::ptrdiff_t find_exclusion(const std::vector<ExcludedPoint>& excluded, const ExcludedPoint& point) {
  const auto is = [&](const ExcludedPoint& other) {
    return other.source == point.source && other.line == point.line && other.point == point.point;
  };
  const auto found = std::ranges::find_if(excluded, is);
  return found == excluded.end() ? -1 : found - excluded.begin();
}

std::vector<std::size_t> points_in_order(const KnownCalibration& known, std::size_t surface) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < known.points.size(); ++i) {
    if (known.points[i].surface == surface) order.push_back(i);
  }
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    const RatePoint &left = known.points[a], &right = known.points[b];
    return left.x != right.x ? left.x < right.x : left.rate < right.rate;
  });
  return order;
}

std::optional<std::size_t> stepped_point(const std::vector<std::size_t>& order, std::optional<std::size_t> from, int by) {
  if (order.empty()) return std::nullopt;
  const auto at = from ? std::ranges::find(order, *from) : order.end();
  if (at == order.end()) return by < 0 ? order.back() : order.front();
  const auto place = std::clamp<std::ptrdiff_t>(at - order.begin() + by, 0, static_cast<std::ptrdiff_t>(order.size()) - 1);
  return order[static_cast<std::size_t>(place)];
}

QString point_sentence(const KnownCalibration& known, const RatePoint& point) {
  const QString unit = rate_curve(known, point.surface).y_label;
  return said("Line %1: %2: %3 %4, predicted time %5 off")
      .arg(count_text(point.line), text_of(point.point), three_digits(point.rate),
           unit.contains(QLatin1String("GB/s")) ? QStringLiteral("GB/s") : unit, signed_share(point.residual));
}

std::vector<SurfaceChange> surface_changes(const std::vector<Surface>& before, const std::vector<Surface>& after) {
  std::vector<SurfaceChange> changes;
  for (const Surface& surface : before) {
    const Surface* now = same_surface(after, surface);
    if (now != nullptr && same_figures(surface.quality, now->quality)) continue;
    changes.push_back(
        {surface.device, surface.name, surface.quality, now == nullptr ? std::nullopt : std::optional(now->quality)});
  }
  for (const Surface& surface : after) {
    if (same_surface(before, surface) == nullptr) changes.push_back({surface.device, surface.name, {}, surface.quality});
  }
  return changes;
}

QString change_sentence(const SurfaceChange& change) {
  const QString name = text_of(change.device) + QStringLiteral(", ") + text_of(change.name);
  if (!change.after) return said("%1: too few points are left for a curve; the defaults stand in").arg(name);
  if (!change.before) return said("%1: new, hold-out median %2").arg(name, share_text(change.after->median_error));
  return said("%1: %2 → %3 points, hold-out median %4 → %5, 90 % within %6 → %7")
      .arg(name, count_text(change.before->rows), count_text(change.after->rows), share_text(change.before->median_error),
           share_text(change.after->median_error), share_text(change.before->p90_error), share_text(change.after->p90_error));
}

QStringList usual_reasons() {
  return {said("far from its neighbours"), said("the machine was not quiet"), said("clocks were throttled"),
          said("measured with a wrong setting")};
}

}  // namespace cpfit::gui
