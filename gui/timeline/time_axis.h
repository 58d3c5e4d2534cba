// Ticks of a time axis: round numbers in one unit for the whole axis (s, ms, us or ns), which is said once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gui/timeline/time_window.h"

namespace cpfit::gui {

enum class AxisUnit : std::uint8_t { kNanoseconds, kMicroseconds, kMilliseconds, kSeconds };
[[nodiscard]] const char* name_of(AxisUnit unit);  // "ns", "µs", "ms", "s"
[[nodiscard]] std::int64_t picoseconds_of(AxisUnit unit);

struct TimeTick {
  std::int64_t time = 0;
  std::string label;  // in the axis' unit, without it; empty for a small tick
};

struct TimeAxis {
  AxisUnit unit = AxisUnit::kSeconds;
  std::int64_t distance = 1;      // between labelled ticks
  std::vector<TimeTick> ticks;    // ascending, inside the window
  std::int64_t label_origin = 0;  // labels count from here; not 0 only where absolute ones would be too long ("+12.5")
};

/// Labelled ticks at least `least_pixels` apart, small ticks at a fifth or a half of their distance.
[[nodiscard]] TimeAxis time_axis(const TimeScale& scale, double least_pixels);

/// As many digits as tell instants `resolution` apart: "968.9 ms".
[[nodiscard]] std::string print_instant(std::int64_t picoseconds, std::int64_t resolution);

}  // namespace cpfit::gui
