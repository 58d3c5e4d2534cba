#include "gui/timeline/timeline_elements.h"

#include <algorithm>
#include <cmath>

#include "gui/timeline/lanes_image.h"

namespace cpfit::gui {

TimelineElements visible_elements(const StepPicture& picture, const TimelineLayout& layout, TimeWindow window, const QRect& lanes,
                                  int scroll) {
  TimelineElements found;
  const TimeScale scale{window, static_cast<double>(lanes.left()), static_cast<double>(lanes.width())};
  // Nothing shorter is wide enough: lanes of a million spans are passed over by this alone.
  const double shortest = kSpanPixels * scale.per_pixel();
  for (std::size_t r = 0; r < layout.rows.size(); ++r) {
    const TimelineRow& row = layout.rows[r];
    if (row.kind != RowKind::kLane || row.lane < 0) continue;
    const QRect place = QRect(lanes.left(), lanes.top() + layout.top_of(r, scroll), lanes.width(), row.height).intersected(lanes);
    // What scrolls lies beneath the pinned rows.
    const int top = row.pinned ? place.top() : std::max(place.top(), lanes.top() + layout.pinned_height);
    if (place.isEmpty() || top > place.bottom()) continue;
    const SpanLane& lane = picture.lane(row.lane);
    for (std::size_t s = first_span_after(lane, window.from); s < lane.spans.size() && lane.spans[s].start < window.to; ++s) {
      const LaneSpan& span = lane.spans[s];
      if (static_cast<double>(span.end - span.start) < shortest || found.elements.size() >= kMostElements) {
        ++found.narrower;
        continue;
      }
      const double left = std::max(scale.x_of(span.start), static_cast<double>(lanes.left()));
      const double right = std::min(scale.x_of(span.end), static_cast<double>(lanes.right() + 1));
      const int from = static_cast<int>(std::floor(left)), to = static_cast<int>(std::ceil(right));
      found.elements.push_back({{row.lane, s}, QRect(from, top, std::max(1, to - from), place.bottom() - top + 1)});
    }
  }
  return found;
}

}  // namespace cpfit::gui
