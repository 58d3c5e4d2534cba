// What of the timeline can be told apart on the screen, as elements with places: for screen readers and whoever else goes through
// a picture without seeing it. Pure.
#pragma once

#include <QRect>
#include <cstddef>
#include <vector>

#include "gui/timeline/timeline_hit.h"
#include "gui/timeline/timeline_layout.h"

namespace cpfit::gui {

struct TimelineElement {
  SpanRef span;
  QRect rect;  // in the coordinates of `lanes`' parent, inside of it
};

struct TimelineElements {
  std::vector<TimelineElement> elements;  // row by row from the top, each in time
  std::size_t narrower = 0;               // spans of the window that are too narrow to be told apart, or beyond the most
};

/// More children than this no one walks through: zooming in shows the others.
inline constexpr std::size_t kMostElements = 2000;

/// Spans at least as wide as those that are drawn one by one (kSpanPixels), on rows that `lanes` shows at this scroll.
[[nodiscard]] TimelineElements visible_elements(const StepPicture& picture, const TimelineLayout& layout, TimeWindow window,
                                                const QRect& lanes, int scroll);

}  // namespace cpfit::gui
