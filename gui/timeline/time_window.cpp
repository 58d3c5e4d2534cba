#include "gui/timeline/time_window.h"

#include <algorithm>
#include <cmath>

namespace cpfit::gui {

namespace {

TimeWindow inside(std::int64_t from, std::int64_t length, std::int64_t step) {
  step = std::max<std::int64_t>(step, 1);
  length = std::clamp(length, std::min(kShortestWindow, step), step);
  from = std::clamp<std::int64_t>(from, 0, step - length);
  return {from, from + length};
}

}  // namespace

TimeWindow zoomed(TimeWindow window, double factor, double share, std::int64_t step) {
  const double length = static_cast<double>(window.length());
  const double anchor = static_cast<double>(window.from) + share * length;
  const double wanted =
      std::clamp(length * factor, static_cast<double>(std::min(kShortestWindow, step)), static_cast<double>(step));
  return inside(std::llround(anchor - share * wanted), std::llround(wanted), step);
}

TimeWindow panned(TimeWindow window, double shares, std::int64_t step) {
  return inside(window.from + std::llround(shares * static_cast<double>(window.length())), window.length(), step);
}

TimeWindow whole(std::int64_t step) { return {0, std::max<std::int64_t>(step, 1)}; }

TimeWindow fitted(std::int64_t from, std::int64_t to, double margin, std::int64_t step) {
  const double length = static_cast<double>(std::max<std::int64_t>(to - from, 1));
  const double wanted = std::max(length * (1 + 2 * margin), static_cast<double>(kShortestWindow));
  const double middle = static_cast<double>(from) + length / 2;
  return inside(std::llround(middle - wanted / 2), std::llround(wanted), step);
}

TimeWindow revealed(TimeWindow window, std::int64_t from, std::int64_t to, std::int64_t step) {
  std::int64_t start = window.from;
  if (to > window.to) start = to - window.length();
  if (from < start || to - from > window.length()) start = from;
  return inside(start, window.length(), step);
}

}  // namespace cpfit::gui
