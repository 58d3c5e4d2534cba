#include "sim/timeline/lanes.h"

#include <string>

namespace cpfit::timeline {

using engine::LaneKind;
using engine::TrafficAxis;
using engine::Work;

std::string_view name_of(LaneKind kind) {
  switch (kind) {
    case LaneKind::kCompute:
      return "compute";
    case LaneKind::kComputeSide:
      return "compute 2";
    case LaneKind::kCpSend:
      return "cp send";
    case LaneKind::kCpReceive:
      return "cp receive";
    case LaneKind::kCpSecond:
      return "cp 2";
    case LaneKind::kCpSecondReceive:
      return "cp 2 receive";
    case LaneKind::kCpThird:
      return "cp dkv";
    case LaneKind::kCpThirdReceive:
      return "cp dkv receive";
    case LaneKind::kTp:
      return "tp";
    case LaneKind::kDpReduce:
      return "dp reduce";
    case LaneKind::kDpReplica:
      return "dp replicas";
    case LaneKind::kDpGather:
      return "dp gather";
    case LaneKind::kPpSend:
      return "pp send";
    case LaneKind::kPpReceive:
      return "pp receive";
    case LaneKind::kPpBackSend:
      return "pp backward send";
    case LaneKind::kPpBackReceive:
      return "pp backward receive";
    case LaneKind::kOther:
      break;
  }
  return "other";
}

std::string_view name_of(TrafficAxis axis) {
  switch (axis) {
    case TrafficAxis::kCp:
      return "cp";
    case TrafficAxis::kTp:
      return "tp";
    case TrafficAxis::kPp:
      return "pp";
    case TrafficAxis::kDp:
      return "dp";
    case TrafficAxis::kForeign:
      return "other job";
    case TrafficAxis::kNone:
      break;
  }
  return "";
}

SpanKind span_kind(const engine::Tag& tag) {
  switch (tag.axis) {
    case TrafficAxis::kCp:
      return SpanKind::kCp;
    case TrafficAxis::kTp:
      return SpanKind::kTp;
    case TrafficAxis::kPp:
      return SpanKind::kPp;
    case TrafficAxis::kDp:
      return SpanKind::kDp;
    case TrafficAxis::kForeign:
      return SpanKind::kForeign;
    case TrafficAxis::kNone:
      break;
  }
  switch (tag.work) {
    case Work::kAttention:
      return SpanKind::kAttention;
    case Work::kMerge:
    case Work::kGemm:
    case Work::kElementwise:
    case Work::kEmbedding:
    case Work::kHead:
      return SpanKind::kCompute;
    case Work::kOptimizer:
      return SpanKind::kOptimizer;
    case Work::kMessage:
    case Work::kCollective:
    case Work::kOther:
      break;
  }
  return SpanKind::kOther;
}

std::int32_t peer_of(const History& history, const Instance& instance, SlotId slot) {
  const engine::Activity& a = history.activity(instance);
  if (history.tag(instance).work != Work::kMessage || a.slots != 2) return kNone;
  return history.rank_of(slot == a.first_slot ? a.first_slot + 1 : a.first_slot);
}

Timeline timeline_of(const History& history) {
  const engine::Program& program = history.program();
  Timeline timeline;
  timeline.step = history.step();
  for (const engine::Tag& tag : program.tags) timeline.names.push_back(tag.name);
  timeline.lanes.reserve(program.lanes.size());
  std::vector<LaneSpan> spans;  // of a lane; it keeps a copy without the room that growing leaves
  for (std::int32_t rank = 0; rank < history.ranks(); ++rank) {
    for (const LaneId id : history.lanes_of(rank)) {
      SpanLane lane;
      lane.rank = rank;
      lane.name = name_of(program.lanes[static_cast<std::size_t>(id)].kind);
      spans.clear();
      history.visit_lane(id, [&](SlotId slot, const Instance& i) {
        const engine::Activity& a = history.activity(i);
        const engine::Tag& tag = history.tag(i);
        LaneSpan span;
        span.start = history.start(i);
        span.end = history.end(i);
        span.posted = history.posted(i, slot);
        span.bytes = is_communication(tag) ? a.amount : 0.0;
        span.activity = i.activity;
        span.copy = i.copy;
        span.name = a.tag;
        span.peer = peer_of(history, i, slot);
        span.layer = static_cast<std::int16_t>(history.layer(i));
        span.micro_batch = a.micro_batch;
        span.chunk = static_cast<std::int8_t>(a.chunk);
        span.sends = span.peer != kNone && slot == a.first_slot;
        span.kind = span_kind(tag);
        span.pass = static_cast<SpanPass>(tag.pass);
        spans.push_back(span);
      });
      lane.spans = std::vector<LaneSpan>(spans.begin(), spans.end());
      timeline.lanes.push_back(std::move(lane));
    }
  }
  return timeline;
}

}  // namespace cpfit::timeline
