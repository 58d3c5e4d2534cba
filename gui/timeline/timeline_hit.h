// What lies under the pointer, and where a dragged edge snaps to. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "gui/timeline/step_picture.h"
#include "gui/timeline/time_window.h"
#include "gui/timeline/timeline_layout.h"

namespace cpfit::gui {

/// A span by its place; holds for one picture.
struct SpanRef {
  std::int32_t lane = -1;  // into Timeline::lanes
  std::size_t span = 0;
  friend bool operator==(const SpanRef&, const SpanRef&) = default;
};
[[nodiscard]] inline const LaneSpan& span_of(const StepPicture& picture, SpanRef ref) {
  return picture.lane(ref.lane).spans[ref.span];
}
[[nodiscard]] inline bool exists(const StepPicture& picture, SpanRef ref) {
  return ref.lane >= 0 && static_cast<std::size_t>(ref.lane) < picture.timeline.lanes.size() &&
         ref.span < picture.lane(ref.lane).spans.size();
}

/// The span of a lane at pixel x, or else the nearest one whose edge is within `reach` pixels: spans narrower than a pixel can be
/// met too.
[[nodiscard]] std::optional<SpanRef> span_under(const StepPicture& picture, std::int32_t lane, const TimeScale& scale, double x,
                                                double reach);

/// The nearest edge of a span of the lane within `reach` pixels of `x`, of equals the earlier; nothing when there is none.
[[nodiscard]] std::optional<std::int64_t> edge_near(const SpanLane& lane, const TimeScale& scale, double x, double reach);

/// The span of the lane that is nearest to an instant: at it, else the one with less idle time between. Nothing on an empty lane.
[[nodiscard]] std::optional<SpanRef> span_nearest(const StepPicture& picture, std::int32_t lane, std::int64_t time);

inline constexpr double kSnapReach = 6;  // pixels

}  // namespace cpfit::gui
