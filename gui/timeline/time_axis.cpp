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

TimeUnit unit_for(std::int64_t picoseconds) {
  if (picoseconds >= 1'000'000'000'000) return TimeUnit::kSeconds;
  if (picoseconds >= 1'000'000'000) return TimeUnit::kMilliseconds;
  if (picoseconds >= 1'000'000) return TimeUnit::kMicroseconds;
  return TimeUnit::kNanoseconds;
}

}  // namespace

const char* name_of(TimeUnit unit) {
  switch (unit) {
    case TimeUnit::kNanoseconds:
      return "ns";
    case TimeUnit::kMicroseconds:
      return "µs";
    case TimeUnit::kMilliseconds:
      return "ms";
    case TimeUnit::kSeconds:
      break;
  }
  return "s";
}

std::int64_t picoseconds_of(TimeUnit unit) {
  switch (unit) {
    case TimeUnit::kNanoseconds:
      return 1'000;
    case TimeUnit::kMicroseconds:
      return 1'000'000;
    case TimeUnit::kMilliseconds:
      return 1'000'000'000;
    case TimeUnit::kSeconds:
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

std::string print_duration(std::int64_t picoseconds) {
  if (picoseconds == 0) return "0 s";
  if (picoseconds < 0) return "-" + print_duration(-picoseconds);
  if (picoseconds < 1'000) return fmt::format("{} ps", picoseconds);
  TimeUnit unit = unit_for(picoseconds);
  double value = static_cast<double>(picoseconds) / static_cast<double>(picoseconds_of(unit));
  if (value >= 999.5 && unit != TimeUnit::kSeconds) {
    unit = static_cast<TimeUnit>(static_cast<int>(unit) + 1);
    value /= 1000;
  }
  const int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, digits, name_of(unit));
}

std::string print_instant(std::int64_t picoseconds, std::int64_t resolution) {
  const TimeUnit unit = picoseconds == 0 ? TimeUnit::kSeconds : unit_for(std::abs(picoseconds));
  const int digits = std::min(9, digits_below(std::max<std::int64_t>(resolution, 1), picoseconds_of(unit)));
  const double value = static_cast<double>(picoseconds) / static_cast<double>(picoseconds_of(unit));
  return fmt::format("{:.{}f} {}", value, digits, name_of(unit));
}

}  // namespace cpfit::gui
