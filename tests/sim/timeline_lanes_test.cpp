// Lanes of spans: running sums against counting picosecond by picosecond, and folded blocks against the same blocks written out.
#include <gtest/gtest.h>

#include "sim/timeline/lanes.h"
#include "timeline_fixture.h"

namespace cpfit::timeline {
namespace {

LaneSpan span(std::int64_t start, std::int64_t end, SpanKind kind, std::int64_t exposed = 0) {
  LaneSpan s;
  s.start = start;
  s.end = end;
  s.posted = start;
  s.kind = kind;
  s.exposed = exposed;
  return s;
}

SpanLane small_lane() {
  // Attention [2,5), a gap, cp [7,11) with its last 3 exposed, compute [11,12), an empty one at 12, cp [14,20) all exposed.
  return {0,
          "mixed",
          {span(2, 5, SpanKind::kAttention), span(7, 11, SpanKind::kCp, 3), span(11, 12, SpanKind::kCompute),
           span(12, 12, SpanKind::kCompute), span(14, 20, SpanKind::kCp, 6)}};
}

/// Counted picosecond by picosecond.
Occupancy counted(const SpanLane& lane, std::int64_t from, std::int64_t to) {
  Occupancy result;
  for (std::int64_t t = from; t < to; ++t) {
    for (const LaneSpan& s : lane.spans) {
      if (t < s.start || t >= s.end) continue;
      ++result.by_kind[static_cast<std::size_t>(s.kind)];
      if (t >= s.end - s.exposed) ++result.exposed;
    }
  }
  return result;
}

TEST(Lanes, SumsOfEveryRangeAreWhatCountingGives) {
  const SpanLane lane = small_lane();
  const LaneSums sums = sums_of(lane);
  EXPECT_EQ(sums.kinds, (std::vector<SpanKind>{SpanKind::kAttention, SpanKind::kCompute, SpanKind::kCp}));
  for (std::int64_t from = 0; from <= 22; ++from) {
    for (std::int64_t to = from; to <= 22; ++to)
      EXPECT_EQ(occupancy(lane, sums, from, to), counted(lane, from, to)) << from << " " << to;
  }
  EXPECT_EQ(occupancy(lane, sums, 0, 22).busy(), 3 + 4 + 1 + 6);
}

TEST(Lanes, ColumnsOfAPictureAddUpToTheRange) {
  const SpanLane lane = small_lane();
  const LaneSums sums = sums_of(lane);
  // 22 ps in 5 columns: bounds 0, 4, 8, 13, 17, 22 (multiples of 4.4, rounded down).
  const std::vector<Occupancy> columns = occupancy_columns(lane, sums, 0, 22, 5);
  const std::vector<std::int64_t> bounds{0, 4, 8, 13, 17, 22};
  ASSERT_EQ(columns.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(columns[i], counted(lane, bounds[i], bounds[i + 1])) << i;
}

TEST(Lanes, SpanAtATime) {
  const SpanLane lane = small_lane();
  EXPECT_EQ(span_at(lane, 1), -1);
  EXPECT_EQ(span_at(lane, 2), 0);
  EXPECT_EQ(span_at(lane, 5), -1);  // ends are open
  EXPECT_EQ(span_at(lane, 10), 1);
  EXPECT_EQ(span_at(lane, 11), 2);
  EXPECT_EQ(span_at(lane, 20), -1);
}

TEST(LanesDeath, OverlappingSpansAreOurMistake) {
  const SpanLane lane{0, "compute", {span(0, 5, SpanKind::kCompute), span(4, 6, SpanKind::kCompute)}};
  EXPECT_DEATH((void)sums_of(lane), "internal error: spans of lane compute");
}

TEST(Lanes, SpansSayWhatTheyAre) {
  Script script;
  script.kernel(0, 10, Work::kAttention, LaneKind::kCompute, 3);
  script.ring(0, 1, 4, 3);
  const engine::Program program = script.builder.take();
  const engine::Run run = by_hand(program);
  const Timeline timeline = timeline_of(History(program, run));
  ASSERT_EQ(timeline.lanes.size(), 3u);
  EXPECT_EQ(timeline.step, 10);
  const LaneSpan& attention = timeline.lanes[0].spans[0];
  EXPECT_EQ(attention.kind, SpanKind::kAttention);
  EXPECT_EQ(attention.layer, 3);
  EXPECT_EQ(attention.peer, -1);
  EXPECT_EQ(timeline.lanes[1].name, "cp send");
  EXPECT_EQ(timeline.lanes[1].spans[0].peer, 1);
  EXPECT_EQ(timeline.lanes[1].spans[0].bytes, 4);
  EXPECT_EQ(timeline.lanes[2].rank, 1);
  EXPECT_EQ(timeline.lanes[2].spans[0].peer, 0);
}

/// `layers` blocks of attention 10 and a ring message 14 that the next block's attention waits for, a head of 5 behind them.
engine::Program blocks(std::int32_t layers, bool folded, std::int32_t stands_for) {
  Script script;
  engine::ActivityId message = kNone;
  const engine::ActivityId first = script.builder.next_id();
  for (std::int32_t l = 0; l < layers; ++l) {
    const engine::ActivityId kernel = script.kernel(0, 10, Work::kAttention, LaneKind::kCompute, l);
    script.builder.wait(kernel, message);
    message = script.ring(1, 0, 14, l);
  }
  if (folded) script.builder.section({first, 2, layers, stands_for, 0});
  script.builder.wait(script.kernel(0, 5, Work::kHead), message);
  return script.builder.take();
}

TEST(Lanes, FoldedBlocksAreTheBlocksWrittenOut) {
  // Block 0: attention [0,10), message [0,14). Block l: attention [14 l, 14 l + 10), message [14 l, 14 (l + 1)): period 14.
  const engine::Program long_program = blocks(7, false, 0);
  const engine::Run long_run = by_hand(long_program);
  // Three copies stand for seven: after copy 1 four are skipped; copy 2 and the head are 4 * 14 later.
  const engine::Program program = blocks(3, true, 7);
  engine::Run run = by_hand(program);
  run.jumps.push_back({0, 1, 4, 14});
  for (std::size_t a = 4; a < program.activities.size(); ++a) {
    run.start[a] += 56;
    run.end[a] += 56;
    const std::size_t first = static_cast<std::size_t>(program.activities[a].first_slot);
    for (std::size_t s = first; s < first + program.activities[a].slots; ++s) run.posted[s] += 56;
  }
  run.makespan += 56;
  ASSERT_EQ(run.makespan, long_run.makespan);
  Timeline expected = timeline_of(History(long_program, long_run));
  Timeline folded = timeline_of(History(program, run));
  // Large steps are kept: no lane holds more room than its spans fill.
  for (const SpanLane& lane : folded.lanes) EXPECT_EQ(lane.spans.capacity(), lane.spans.size());
  ASSERT_EQ(folded.lanes.size(), expected.lanes.size());
  for (std::size_t l = 0; l < folded.lanes.size(); ++l) {
    ASSERT_EQ(folded.lanes[l].spans.size(), expected.lanes[l].spans.size());
    for (std::size_t i = 0; i < folded.lanes[l].spans.size(); ++i) {
      LaneSpan& a = folded.lanes[l].spans[i];
      LaneSpan& b = expected.lanes[l].spans[i];
      EXPECT_EQ(a.copy, a.layer < 0 ? 0 : a.layer);   // copies are counted through
      a.activity = b.activity = a.copy = b.copy = 0;  // the only differences: ids
      EXPECT_EQ(a, b) << "lane " << l << " span " << i;
    }
  }
}

TEST(History, ACycleOfTwoCopiesIsRepeatedAsAWhole) {
  // Kernels of eight layers, cycle 2: copies 0 and 1 start at 0 and 10, every cycle 25 later. Four copies are held; four are
  // skipped after copy 1, so held copies 2 and 3 are copies 6 and 7, at 75 and 85.
  Script s;
  for (std::int32_t l = 0; l < 4; ++l) s.kernel(0, 5, Work::kGemm, LaneKind::kCompute, l);
  s.builder.section({0, 1, 4, 8, 0});
  const engine::Program program = s.builder.take();
  engine::Run run = by_hand(program);
  run.start = {0, 10, 75, 85};
  run.end = {5, 16, 80, 91};
  run.posted = run.start;
  run.makespan = 91;
  run.jumps.push_back({0, 1, 4, 25, 2});
  const History history(program, run);
  const std::vector<LaneSpan> spans = timeline_of(history).lanes[0].spans;
  ASSERT_EQ(spans.size(), 8u);
  for (std::int32_t c = 0; c < 8; ++c) {
    const LaneSpan& span = spans[static_cast<std::size_t>(c)];
    EXPECT_EQ(span.start, c / 2 * 25 + c % 2 * 10);
    EXPECT_EQ(span.end - span.start, 5 + c % 2);
    EXPECT_EQ(span.copy, c);
    EXPECT_EQ(span.layer, c);
  }
  EXPECT_EQ(history.referred({1, 5, 50}, 0), (Instance{0, 4, 50}));
  EXPECT_EQ(history.referred({2, 6, 0}, 1), (Instance{1, 5, 50}));
  std::vector<std::int32_t> copies;
  history.visit_activity(0, [&](const Instance& i) { copies.push_back(i.copy); });
  EXPECT_EQ(copies, (std::vector<std::int32_t>{0, 2, 4}));
}

TEST(History, CopiesReferToTheCopyBefore) {
  const engine::Program program = blocks(3, true, 7);
  engine::Run run = by_hand(program);
  run.jumps.push_back({0, 1, 4, 14});
  const History history(program, run);
  // Activities: 0, 2, 4 attention of copies 0, 1, 2 (2 is copy 6 of the step); 1, 3, 5 messages. Attention 2 waits for message 1.
  EXPECT_EQ(history.referred({2, 1, 0}, 1), (Instance{1, 0, 0}));
  EXPECT_EQ(history.referred({2, 2, 14}, 1), (Instance{3, 1, 0}));        // first skipped copy waits for copy 1 itself
  EXPECT_EQ(history.referred({2, 5, 56}, 1), (Instance{3, 4, 42}));       // last skipped one for the third skipped
  EXPECT_EQ(history.referred(history.held(4), 3), (Instance{3, 5, 56}));  // copy 6 for the last skipped one
  EXPECT_EQ(history.held(4).copy, 6);
  EXPECT_EQ(history.layer({2, 5, 56}), 5);
  std::vector<Picoseconds> shifts;
  history.visit_activity(3, [&](const Instance& i) { shifts.push_back(i.shift); });
  EXPECT_EQ(shifts, (std::vector<Picoseconds>{0, 14, 28, 42, 56}));
}

}  // namespace
}  // namespace cpfit::timeline
