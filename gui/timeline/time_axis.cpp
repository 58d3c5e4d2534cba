#include "gui/timeline/time_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace cpfit::gui {

namespace {

struct Round {
  std::int64_t distance = 1, small = 1;
};

/// The least of 1, 2, 5 times a power of ten at or above `least`.
Round round_distance(double least) {
  std::int64_t power = 1;
  while (static_cast<double>(power) * 10 <= least && power < 1'000'000'000'000'000'000) power *= 10;
  for (const auto& [factor, parts] : std::array<std::pair<std::int64_t, std::int64_t>, 4>{{{1, 5}, {2, 4}, {5, 5}, {10, 5}}}) {
    const std::int64_t distance = power * factor;
    if (static_cast<double>(distance) >= least) return {distance, std::max<std::int64_t>(1, distance / parts)};
  }
  return {power * 10, power * 2};
}

int digits_below(std::int64_t distance, std::int64_t unit) {
  int digits = 0;
  while (distance < unit && unit > 1) {
    unit /= 10;
    ++digits;
  }
  return digits;
}

AxisUnit unit_for(std::int64_t picoseconds) {
  if (picoseconds >= 1'000'000'000'000) return AxisUnit::kSeconds;
  if (picoseconds >= 1'000'000'000) return AxisUnit::kMilliseconds;
  if (picoseconds >= 1'000'000) return AxisUnit::kMicroseconds;
  return AxisUnit::kNanoseconds;
}

}  // namespace

const char* name_of(AxisUnit unit) {
  switch (unit) {
    case AxisUnit::kNanoseconds:
      return "ns";
    case AxisUnit::kMicroseconds:
      return "µs";
    case AxisUnit::kMilliseconds:
      return "ms";
    case AxisUnit::kSeconds:
      break;
  }
  return "s";
}

std::int64_t picoseconds_of(AxisUnit unit) {
  switch (unit) {
    case AxisUnit::kNanoseconds:
      return 1'000;
    case AxisUnit::kMicroseconds:
      return 1'000'000;
    case AxisUnit::kMilliseconds:
      return 1'000'000'000;
    case AxisUnit::kSeconds:
      break;
  }
  return 1'000'000'000'000;
}

TimeAxis time_axis(const TimeScale& scale, double least_pixels) {
  TimeAxis axis;
  const Round round = round_distance(scale.per_pixel() * least_pixels);
  axis.distance = round.distance;
  // The unit in which a distance between ticks is no long fraction: 0.1 s rather than 100 ms beside 1.2 s.
  axis.unit = unit_for(std::max(scale.window.length(), round.distance));
  const std::int64_t unit = picoseconds_of(axis.unit);
  const int digits = digits_below(round.distance, unit);
  // Deep inside a long step "12.003456" says less than "+3.2": labels then count from a round instant before the window.
  const std::int64_t reach = std::max<std::int64_t>(std::abs(scale.window.to), 1);
  if (static_cast<double>(reach) / static_cast<double>(round.distance) > 1e5) {
    std::int64_t coarse = 1;
    while (coarse < scale.window.length()) coarse *= 10;
    axis.label_origin = scale.window.from / coarse * coarse;
  }
  std::int64_t first = scale.window.from / round.small * round.small;
  if (first < scale.window.from) first += round.small;
  for (std::int64_t time = first; time < scale.window.to; time += round.small) {
    TimeTick tick;
    tick.time = time;
    if (time % round.distance == 0) {
      const double value = static_cast<double>(time - axis.label_origin) / static_cast<double>(unit);
      tick.label = fmt::format("{}{:.{}f}", axis.label_origin != 0 ? "+" : "", value, digits);
    }
    axis.ticks.push_back(std::move(tick));
  }
  return axis;
}

std::string print_instant(std::int64_t picoseconds, std::int64_t resolution) {
  const AxisUnit unit = picoseconds == 0 ? AxisUnit::kSeconds : unit_for(std::abs(picoseconds));
  const int digits = std::min(9, digits_below(std::max<std::int64_t>(resolution, 1), picoseconds_of(unit)));
  const double value = static_cast<double>(picoseconds) / static_cast<double>(picoseconds_of(unit));
  return fmt::format("{:.{}f} {}", value, digits, name_of(unit));
}

}  // namespace cpfit::gui
