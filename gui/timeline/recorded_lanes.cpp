#include "gui/timeline/recorded_lanes.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace cpfit::gui {

namespace {

using Interval = std::pair<std::int64_t, std::int64_t>;

std::vector<Interval> united(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end());
  std::vector<Interval> result;
  for (const Interval& next : intervals) {
    if (!result.empty() && next.first <= result.back().second) {
      result.back().second = std::max(result.back().second, next.second);
    } else {
      result.push_back(next);
    }
  }
  return result;
}

LaneSpan plain(std::int64_t start, std::int64_t end, DeviceWork work, std::int32_t number) {
  LaneSpan span;
  span.start = span.posted = start;
  span.end = end;
  span.name = static_cast<std::int32_t>(work);
  span.kind = work == DeviceWork::kCompute ? SpanKind::kCompute : SpanKind::kOther;
  span.activity = number;
  return span;
}

/// The pieces of a communication span, hidden and exposed in turns.
void cut(const DeviceSpan& span, const std::vector<Interval>& compute, std::int32_t number, std::vector<LaneSpan>& out) {
  std::int64_t at = span.start;
  const auto piece = [&](std::int64_t to, bool exposed) {
    if (to <= at) return;
    LaneSpan made = plain(at, to, DeviceWork::kCommunication, number);
    made.exposed = exposed ? to - at : 0;
    out.push_back(made);
    at = to;
  };
  auto next = std::partition_point(compute.begin(), compute.end(), [&](const Interval& i) { return i.second <= span.start; });
  for (; next != compute.end() && next->first < span.end; ++next) {
    piece(std::min(next->first, span.end), true);
    piece(std::min(next->second, span.end), false);
  }
  piece(span.end, true);
}

std::string lane_name(DeviceWork work, std::int32_t stream, int copy) {
  const char* what = work == DeviceWork::kCompute ? "compute" : work == DeviceWork::kCommunication ? "communication" : "copy";
  return std::string(what) + ", stream " + std::to_string(stream) + (copy > 0 ? " (" + std::to_string(copy + 1) + ")" : "");
}

std::string file_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

}  // namespace

std::vector<TracedStep> steps_of(const RecordedTrace& trace) {
  if (!trace.steps.empty()) return trace.steps;
  TracedStep all{"whole trace", std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min(), false};
  for (const TracedDevice& device : trace.devices) {
    for (const DeviceSpan& span : device.spans) {
      all.start = std::min(all.start, span.start);
      all.end = std::max(all.end, span.end);
    }
  }
  ++all.end;  // a span that begins with the last end belongs to it
  return {all};
}

RecordedLanes recorded_lanes(const RecordedTrace& trace, std::size_t device, const TracedStep& step) {
  RecordedLanes result;
  const TracedDevice& gpu = trace.devices[device];
  result.title = "recorded GPU " + gpu.name;
  result.note = step.name + " of " + file_name(trace.path);
  if (trace.rank) result.note += ", rank " + std::to_string(*trace.rank);

  std::vector<DeviceSpan> inside;
  std::vector<Interval> compute;
  for (const DeviceSpan& span : gpu.spans) {
    if (span.start < step.start || span.start >= step.end) continue;
    inside.push_back(span);
    if (span.work == DeviceWork::kCompute) compute.emplace_back(span.start, span.end);
  }
  compute = united(std::move(compute));
  std::stable_sort(inside.begin(), inside.end(), [](const DeviceSpan& a, const DeviceSpan& b) { return a.start < b.start; });
  if (inside.empty()) return result;
  const std::int64_t origin = step.on_gpu ? step.start : inside.front().start;

  std::map<std::pair<DeviceWork, std::int32_t>, std::vector<std::size_t>> lanes_of;  // of a stream's work
  std::int32_t number = 0;
  for (const DeviceSpan& span : inside) {
    std::vector<std::size_t>& own = lanes_of[{span.work, span.stream}];
    const auto free = std::find_if(own.begin(), own.end(),
                                   [&](std::size_t lane) { return result.lanes[lane].spans.back().end + origin <= span.start; });
    std::size_t lane = free == own.end() ? result.lanes.size() : *free;
    if (free == own.end()) {
      result.lanes.push_back({0, lane_name(span.work, span.stream, static_cast<int>(own.size())), {}});
      own.push_back(lane);
    }
    std::vector<LaneSpan> pieces;
    if (span.work == DeviceWork::kCommunication) {
      cut(span, compute, number, pieces);
    } else {
      pieces.push_back(plain(span.start, span.end, span.work, number));
    }
    ++number;
    for (LaneSpan piece : pieces) {
      piece.start -= origin;
      piece.end -= origin;
      piece.posted = piece.start;
      result.length = std::max(result.length, piece.end);
      result.lanes[lane].spans.push_back(piece);
    }
    if (pieces.empty()) result.lanes[lane].spans.push_back(plain(span.start - origin, span.end - origin, span.work, number));
  }
  return result;
}

std::shared_ptr<const StepPicture> with_recorded(const StepPicture& picture, const RecordedLanes& recorded) {
  auto both = std::make_shared<StepPicture>(picture);
  const std::int32_t first_name = static_cast<std::int32_t>(both->timeline.names.size());
  for (const char* name : {"compute", "communication", "copy"}) {
    both->timeline.names.emplace_back(name);
    both->ring_steps.push_back(0);
  }
  PictureRank rank;
  rank.rank = -2 - static_cast<std::int64_t>(both->ranks.size());  // no rank of the cluster
  rank.node = both->ranks.empty() ? 0 : both->ranks.front().node;
  rank.ring = static_cast<std::int32_t>(both->ranks.size());
  rank.alike = rank.ring;
  rank.title = recorded.title;
  rank.note = recorded.note;
  for (const SpanLane& lane : recorded.lanes) {
    SpanLane made = lane;
    made.rank = rank.ring;
    for (LaneSpan& span : made.spans) {
      span.name += first_name;
      rank.exposed += span.exposed;
    }
    rank.lanes.push_back(static_cast<std::int32_t>(both->timeline.lanes.size()));
    both->sums.push_back(sums_of(made));
    both->timeline.lanes.push_back(std::move(made));
  }
  std::stable_sort(rank.lanes.begin(), rank.lanes.end(),
                   [&](std::int32_t a, std::int32_t b) { return family_of(both->lane(a)) < family_of(both->lane(b)); });
  both->marks.resize(both->timeline.lanes.size());
  both->bytes_before.resize(both->timeline.lanes.size());
  both->timeline.step = std::max(both->timeline.step, recorded.length);
  both->ranks.push_back(std::move(rank));
  return both;
}

}  // namespace cpfit::gui
