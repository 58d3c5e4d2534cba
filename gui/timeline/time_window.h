// The stretch of time that a view shows, and how it moves: zoom at the pointer, pan, fit. Whole picoseconds; pixels are doubles.
#pragma once

#include <cstdint>

namespace cpfit::gui {

/// [from, to), from < to.
struct TimeWindow {
  std::int64_t from = 0, to = 1;
  [[nodiscard]] std::int64_t length() const { return to - from; }
  friend bool operator==(const TimeWindow&, const TimeWindow&) = default;
};

/// Shortest window: 100 ns, below which nothing of a step can be told apart.
inline constexpr std::int64_t kShortestWindow = 100'000;

/// The window scaled by `factor` (< 1 zooms in) so that what lies at `share` (0 left edge .. 1 right edge) stays there. Kept
/// inside [0, step), no shorter than kShortestWindow and no longer than the step.
[[nodiscard]] TimeWindow zoomed(TimeWindow window, double factor, double share, std::int64_t step);
/// Moved by `shares` of its own length (> 0: later), kept inside [0, step).
[[nodiscard]] TimeWindow panned(TimeWindow window, double shares, std::int64_t step);
[[nodiscard]] TimeWindow whole(std::int64_t step);
/// The range with `margin` of its length on both sides; kept inside [0, step).
[[nodiscard]] TimeWindow fitted(std::int64_t from, std::int64_t to, double margin, std::int64_t step);
/// Moved as little as possible so that [from, to) is inside; where it is longer than the window its beginning is.
[[nodiscard]] TimeWindow revealed(TimeWindow window, std::int64_t from, std::int64_t to, std::int64_t step);

/// Pixels of a window drawn from x = left over `width` pixels.
struct TimeScale {
  TimeWindow window;
  double left = 0, width = 1;
  [[nodiscard]] double x_of(std::int64_t time) const {
    return left + width * static_cast<double>(time - window.from) / static_cast<double>(window.length());
  }
  [[nodiscard]] std::int64_t time_at(double x) const {
    return window.from + static_cast<std::int64_t>((x - left) / width * static_cast<double>(window.length()));
  }
  /// Picoseconds of one pixel.
  [[nodiscard]] double per_pixel() const { return static_cast<double>(window.length()) / width; }
};

}  // namespace cpfit::gui
