#include "gui/timeline/range_sums.h"

#include <algorithm>

namespace cpfit::gui {

namespace {

/// Time in the range in which at least one of two lanes is busy; a sweep over the shorter one.
std::int64_t busy_together(const SpanLane& a, const SpanLane& b, TimeWindow range) {
  std::int64_t sum = 0;
  std::size_t j = first_span_after(b, range.from);
  for (std::size_t i = first_span_after(a, range.from); i < a.spans.size() && a.spans[i].start < range.to; ++i) {
    while (j > 0 && j < b.spans.size() && b.spans[j - 1].end > a.spans[i].start) --j;
    for (; j < b.spans.size() && b.spans[j].start < std::min(a.spans[i].end, range.to); ++j) {
      const std::int64_t from = std::max({a.spans[i].start, b.spans[j].start, range.from});
      const std::int64_t to = std::min({a.spans[i].end, b.spans[j].end, range.to});
      sum += std::max<std::int64_t>(0, to - from);
    }
  }
  return sum;
}

double bytes_until(const SpanLane& lane, const std::vector<double>& before, std::int64_t time) {
  const std::size_t next = first_span_after(lane, time);
  double sum = before[next];
  if (next < lane.spans.size() && lane.spans[next].start < time) {
    const LaneSpan& cut = lane.spans[next];
    sum += cut.bytes * static_cast<double>(time - cut.start) / static_cast<double>(cut.end - cut.start);
  }
  return sum;
}

}  // namespace

RangeSums range_sums(const StepPicture& picture, std::int32_t rank, TimeWindow range) {
  RangeSums result;
  result.range = range;
  if (rank < 0 || static_cast<std::size_t>(rank) >= picture.ranks.size()) return result;
  const SpanLane* compute = nullptr;
  for (const std::int32_t index : picture.ranks[static_cast<std::size_t>(rank)].lanes) {
    const SpanLane& lane = picture.lane(index);
    const Occupancy inside = occupancy(lane, picture.sums[static_cast<std::size_t>(index)], range.from, range.to);
    if (family_of(lane) == LaneFamily::kCompute) {
      result.compute += inside.busy();
      if (compute != nullptr) result.compute -= busy_together(lane, *compute, range);
      if (compute == nullptr) compute = &lane;
      continue;
    }
    result.communication += inside.busy();
    result.exposed += inside.exposed;
    const std::vector<double>& before = picture.bytes_before[static_cast<std::size_t>(index)];
    if (!before.empty()) result.bytes += bytes_until(lane, before, range.to) - bytes_until(lane, before, range.from);
  }
  result.idle = std::max<std::int64_t>(0, range.length() - result.compute - result.exposed);
  return result;
}

std::vector<KindSums> kind_sums(const StepPicture& picture, const std::vector<std::int32_t>& lanes, TimeWindow range) {
  std::array<KindSums, kSpanKinds> all{};
  for (const std::int32_t index : lanes) {
    const SpanLane& lane = picture.lane(index);
    for (std::size_t s = first_span_after(lane, range.from); s < lane.spans.size() && lane.spans[s].start < range.to; ++s) {
      const LaneSpan& span = lane.spans[s];
      KindSums& kind = all[static_cast<std::size_t>(span.kind)];
      const std::int64_t length = span.end - span.start;
      const std::int64_t inside = std::min(span.end, range.to) - std::max(span.start, range.from);
      const std::int64_t exposed_from = std::max(span.end - span.exposed, range.from);
      kind.least = kind.count == 0 ? length : std::min(kind.least, length);
      kind.most = std::max(kind.most, length);
      ++kind.count;
      kind.sum += inside;
      kind.exposed += std::max<std::int64_t>(0, std::min(span.end, range.to) - exposed_from);
      kind.bytes += length > 0 ? span.bytes * static_cast<double>(inside) / static_cast<double>(length) : span.bytes;
    }
  }
  std::vector<KindSums> result;
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (all[k].count == 0) continue;
    all[k].kind = static_cast<SpanKind>(k);
    result.push_back(all[k]);
  }
  return result;
}

}  // namespace cpfit::gui
