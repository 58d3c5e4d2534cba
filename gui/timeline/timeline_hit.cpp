#include "gui/timeline/timeline_hit.h"

#include <cmath>

namespace cpfit::gui {

std::optional<SpanRef> span_under(const StepPicture& picture, std::int32_t lane, const TimeScale& scale, double x, double reach) {
  if (lane < 0) return std::nullopt;
  const SpanLane& own = picture.lane(lane);
  const std::int64_t time = scale.time_at(x);
  const std::size_t next = first_span_after(own, time);
  if (next < own.spans.size() && own.spans[next].start <= time) return SpanRef{lane, next};
  const double after = next < own.spans.size() ? scale.x_of(own.spans[next].start) - x : reach + 1;
  const double before = next > 0 ? x - scale.x_of(own.spans[next - 1].end) : reach + 1;
  if (before <= reach && before <= after) return SpanRef{lane, next - 1};
  if (after <= reach) return SpanRef{lane, next};
  return std::nullopt;
}

std::optional<std::int64_t> edge_near(const SpanLane& lane, const TimeScale& scale, double x, double reach) {
  const std::int64_t time = scale.time_at(x);
  const std::size_t next = first_span_after(lane, time);
  std::optional<std::int64_t> best;
  double distance = reach;
  const auto consider = [&](std::int64_t edge) {
    const double away = std::abs(scale.x_of(edge) - x);
    if (away > reach || (best && away >= distance)) return;
    best = edge;
    distance = away;
  };
  if (next > 0) {
    consider(lane.spans[next - 1].start);
    consider(lane.spans[next - 1].end);
  }
  for (std::size_t s = next; s < lane.spans.size() && s < next + 2; ++s) {
    consider(lane.spans[s].start);
    consider(lane.spans[s].end);
  }
  return best;
}

std::optional<SpanRef> span_nearest(const StepPicture& picture, std::int32_t lane, std::int64_t time) {
  if (lane < 0 || picture.lane(lane).spans.empty()) return std::nullopt;
  const std::vector<LaneSpan>& spans = picture.lane(lane).spans;
  const std::size_t next = first_span_after(picture.lane(lane), time);
  if (next >= spans.size()) return SpanRef{lane, spans.size() - 1};
  if (next == 0 || spans[next].start <= time) return SpanRef{lane, next};
  const std::int64_t before = time - spans[next - 1].end, after = spans[next].start - time;
  return SpanRef{lane, before <= after ? next - 1 : next};
}

}  // namespace cpfit::gui
