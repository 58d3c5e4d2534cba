// The pure cores of the step timeline: windows, ticks, rows, occupancy, hits, sums.
#include <cmath>
#include <numeric>

#include "gui/look/hatch.h"
#include "gui/timeline/in_flight.h"
#include "gui/timeline/lanes_image.h"
#include "gui/timeline/range_sums.h"
#include "gui/timeline/recorded_lanes.h"
#include "gui/timeline/span_search.h"
#include "gui/timeline/time_axis.h"
#include "gui/timeline/timeline_elements.h"
#include "gui/timeline/timeline_layout.h"
#include "small_step.h"

namespace cpfit::gui {
namespace {

using test::kMicro;
using test::two_rank_picture;

constexpr std::int64_t kStep = 1'000'000'000'000;  // 1 s

TEST(TimeWindows, ZoomKeepsWhatIsUnderThePointer) {
  // A quarter into [0.4 s, 0.8 s) lies 0.5 s; halved, 0.5 s lies a quarter into [0.45 s, 0.65 s).
  const TimeWindow window = zoomed({400'000'000'000, 800'000'000'000}, 0.5, 0.25, kStep);
  EXPECT_EQ(window, (TimeWindow{450'000'000'000, 650'000'000'000}));
}

TEST(TimeWindows, StayInsideTheStep) {
  EXPECT_EQ(zoomed({0, kStep}, 4.0, 0.5, kStep), whole(kStep));
  EXPECT_EQ(panned({800'000'000'000, 1'000'000'000'000}, 3.0, kStep), (TimeWindow{800'000'000'000, kStep}));
  EXPECT_EQ(panned({0, 100}, -1.0, kStep).from, 0);
  EXPECT_EQ(zoomed({0, kStep}, 1e-12, 0.0, kStep).length(), kShortestWindow);
}

TEST(TimeWindows, RevealMovesNoMoreThanItMust) {
  const TimeWindow window{100 * kMicro, 200 * kMicro};
  EXPECT_EQ(revealed(window, 120 * kMicro, 180 * kMicro, kStep), window);
  EXPECT_EQ(revealed(window, 190 * kMicro, 220 * kMicro, kStep), (TimeWindow{120 * kMicro, 220 * kMicro}));
  EXPECT_EQ(revealed(window, 50 * kMicro, 60 * kMicro, kStep), (TimeWindow{50 * kMicro, 150 * kMicro}));
  EXPECT_EQ(revealed(window, 300 * kMicro, 900 * kMicro, kStep).from, 300 * kMicro) << "longer than the window: its beginning";
}

TEST(TimeAxes, TicksAreRoundAndFarEnoughApart) {
  // 1 s over 1000 pixels: 84 pixels are 84 ms, so labels are 100 ms apart, in a unit that is said once.
  const TimeScale scale{{0, kStep}, 0, 1000};
  const TimeAxis axis = time_axis(scale, 84);
  EXPECT_EQ(axis.distance, 100'000'000'000);
  EXPECT_EQ(axis.unit, AxisUnit::kSeconds);
  std::vector<std::string> labels;
  for (const TimeTick& tick : axis.ticks) {
    EXPECT_GE(tick.time, 0);
    EXPECT_LT(tick.time, kStep);
    if (!tick.label.empty()) labels.push_back(tick.label);
  }
  EXPECT_EQ(labels.front(), "0.0");
  EXPECT_EQ(labels.back(), "0.9");
  EXPECT_EQ(labels.size(), 10U);
}

TEST(TimeAxes, DeepInsideALongStepLabelsCountFromARoundInstant) {
  // A window of 10 us at 20 s: 1 us apart would be "20.000001 s".
  const TimeScale scale{{20 * kStep, 20 * kStep + 10 * kMicro}, 0, 900};
  const TimeAxis axis = time_axis(scale, 84);
  EXPECT_EQ(axis.unit, AxisUnit::kMicroseconds);
  EXPECT_EQ(axis.label_origin, 20 * kStep);
  ASSERT_FALSE(axis.ticks.empty());
  EXPECT_EQ(axis.ticks.front().label, "+0");
}

TEST(TimeAxes, NeverLabelsCloserThanAsked) {
  for (std::int64_t length = 150'000; length < 40 * kStep; length = length * 3 + 7) {
    const TimeScale scale{{123'456'789, 123'456'789 + length}, 0, 777};
    const TimeAxis axis = time_axis(scale, 60);
    double last = -1e9;
    int labels = 0;
    for (const TimeTick& tick : axis.ticks) {
      if (tick.label.empty()) continue;
      EXPECT_GE(scale.x_of(tick.time) - last, 59.99) << length;
      last = scale.x_of(tick.time);
      ++labels;
    }
    EXPECT_GE(labels, 3) << length;
  }
}

/// Slow and obvious: every span against every column.
RasterColumn column_by_hand(const SpanLane& lane, std::int64_t from, std::int64_t to) {
  std::array<std::int64_t, kSpanKinds> by_kind{};
  RasterColumn column;
  for (const LaneSpan& span : lane.spans) {
    const std::int64_t inside = std::min(span.end, to) - std::max(span.start, from);
    if (inside > 0) by_kind[static_cast<std::size_t>(span.kind)] += inside;
    column.exposed += std::max<std::int64_t>(0, std::min(span.end, to) - std::max(span.end - span.exposed, from));
  }
  std::int64_t most = 0;
  for (std::size_t k = 0; k < kSpanKinds; ++k) {
    column.busy += by_kind[k];
    if (by_kind[k] > most) {
      most = by_kind[k];
      column.kind = static_cast<SpanKind>(k);
    }
  }
  return column;
}

TEST(LaneRaster, IsExactOnRandomLanes) {
  std::mt19937 random(20240611);
  for (int round = 0; round < 60; ++round) {
    const SpanLane lane = test::random_lane(random, 1 + random() % 120, 1 + static_cast<std::int64_t>(random() % 900));
    const LaneSums sums = sums_of(lane);
    const std::int64_t end = lane.spans.back().end + 10;
    const std::int64_t from = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end));
    const TimeWindow window{from, from + 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(2 * end))};
    const std::size_t columns = 1 + random() % 90;
    const std::vector<std::int64_t> bounds = column_bounds(window, columns);
    std::vector<RasterColumn> found(columns);
    raster_columns(lane, sums, bounds, found);
    const std::vector<Occupancy> reference = occupancy_columns(lane, sums, window.from, window.to, columns);
    for (std::size_t i = 0; i < columns; ++i) {
      EXPECT_EQ(found[i], column_by_hand(lane, bounds[i], bounds[i + 1])) << round << " " << i;
      EXPECT_EQ(found[i].busy, reference[i].busy());
      EXPECT_EQ(found[i].exposed, reference[i].exposed);
    }
  }
}

struct Canvas {
  Canvas(int width, int height)
      : pixels(static_cast<std::size_t>(width) * static_cast<std::size_t>(height)), block{pixels.data(), width, width, height} {}
  std::vector<Pixel> pixels;
  PixelBlock block;
};

TEST(LanesImage, ExposedTimeIsHatchedAndStallsAreMarked) {
  const std::shared_ptr<const StepPicture> picture = two_rank_picture();
  RowChoices choices;
  choices.open_rings = {0, 1};
  const TimelineLayout layout = timeline_layout(*picture, choices, {});
  RasterPalette palette;
  palette.kind.fill(0xff0000ff);
  palette.exposed = 0xffff8800;
  palette.hatch = 0xff111111;
  palette.stall = 0xffff0000;
  Canvas canvas(230, layout.scrolled_height);  // a pixel per microsecond
  const LanesPicture lanes{*picture, layout, whole(picture->timeline.step), 0, 1, false};
  (void)paint_lanes(canvas.block, lanes, palette);
  const std::ptrdiff_t send = layout.row_of_lane(1), compute = layout.row_of_lane(0);
  ASSERT_GE(send, 0);
  const TimelineRow& row = layout.rows[static_cast<std::size_t>(send)];
  int ink = 0, hue = 0;
  for (int y = row.top + 3; y < row.top + row.height - 3; ++y) {
    EXPECT_EQ(canvas.block.row(y)[50], 0xff0000ffU) << "hidden communication is plain";
    for (int x = 102; x < 128; ++x) {
      ink += canvas.block.row(y)[x] == palette.hatch ? 1 : 0;
      hue += canvas.block.row(y)[x] == palette.exposed ? 1 : 0;
    }
  }
  EXPECT_GT(ink, 40) << "the last 30 us are hatched";
  EXPECT_GT(hue, 40);
  EXPECT_EQ(ink + hue, 26 * (row.height - 6));
  const TimelineRow& waiting = layout.rows[static_cast<std::size_t>(compute)];
  EXPECT_EQ(canvas.block.row(waiting.top + waiting.height - 3)[115], palette.stall);
  EXPECT_EQ(canvas.block.row(waiting.top + waiting.height - 3)[50], 0xff0000ffU);
}

TEST(LanesImage, ZoomedOutNothingIsLost) {
  // 1000 spans of 1 ps every 1000 ps, 10 pixels: each column has 100 ps of 100,000 ps busy, and is not the background.
  Timeline step;
  step.step = 1'000'000;
  step.names = {"x"};
  SpanLane lane{0, "compute", {}};
  for (std::int64_t i = 0; i < 1000; ++i) {
    LaneSpan made;
    made.start = made.posted = i * 1000;
    made.end = i * 1000 + 1;
    made.kind = SpanKind::kAttention;
    lane.spans.push_back(made);
  }
  step.lanes.push_back(lane);
  const std::shared_ptr<const StepPicture> picture = picture_of(step, {{.node = 0, .rank = 0, .stage = 0}});
  const TimelineLayout layout = timeline_layout(*picture, {}, {});
  RasterPalette palette;
  palette.kind.fill(0xff000000);
  Canvas canvas(10, layout.scrolled_height);
  const std::vector<LabelPlace> labels = paint_lanes(canvas.block, {*picture, layout, whole(step.step), 0, 1, false}, palette);
  EXPECT_TRUE(labels.empty());
  const TimelineRow& row = layout.rows[static_cast<std::size_t>(layout.row_of_lane(0))];
  for (int x = 0; x < 10; ++x) EXPECT_NE(canvas.block.row(row.top + row.height / 2)[x], palette.background) << x;
}

TEST(TimelineLayouts, EqualRanksAreOneBlockAndSaySo) {
  const std::shared_ptr<const StepPicture> picture = two_rank_picture();
  RowChoices choices;
  choices.open_rings = {0, 1};
  const TimelineLayout layout = timeline_layout(*picture, choices, {});
  EXPECT_EQ(layout.rows.front().title, "ranks 0, 1, identical");
  EXPECT_EQ(layout.rows.size(), 4U) << "a header and three lanes";
}

TEST(TimelineLayouts, ARingShowsOneRankAndOffersTheOthers) {
  const test::RealStep real = test::real_step("llama3-8b-128k-2nodes.toml", "tp=2,cp=8,pp=1,dp=1");
  ASSERT_TRUE(real.picture);
  const TimelineLayout folded = timeline_layout(*real.picture, {}, {});
  ASSERT_EQ(folded.rows.back().kind, RowKind::kMore);
  EXPECT_EQ(folded.rows.back().title, "show all 8");
  RowChoices open;
  show_rank(*real.picture, 5, open);
  const TimelineLayout all = timeline_layout(*real.picture, open, {});
  std::int64_t ranks = 0;
  for (const TimelineRow& row : all.rows) {
    EXPECT_NE(row.kind, RowKind::kMore);
    ranks += row.kind == RowKind::kRank ? 1 : 0;
  }
  EXPECT_GE(ranks, 2);
  EXPECT_EQ(all.rows.front().title, "node 0");
}

TEST(TimelineLayouts, PinnedRanksComeFirstAndDoNotScroll) {
  const std::shared_ptr<const StepPicture> picture = two_rank_picture();
  RowChoices choices;
  choices.pinned_ranks = {1};
  const TimelineLayout layout = timeline_layout(*picture, choices, {});
  EXPECT_EQ(layout.rows.front().title, "rank 1");
  EXPECT_EQ(layout.pinned, 4U);
  EXPECT_EQ(layout.row_at(3, 5000), 0) << "wherever the rest is scrolled";
  EXPECT_EQ(layout.top_of(4, 100), layout.pinned_height - 100);
}

TEST(TimelineLayouts, RanksInShort) {
  EXPECT_EQ(print_ranks({0, 1, 2, 3}), "0–3");
  EXPECT_EQ(print_ranks({0, 2, 4, 6, 8, 10, 14}), "0, 2, 4 … 14");
  EXPECT_EQ(print_ranks({3, 5}), "3, 5");
}

TEST(TimelineElements, AreTheSpansThatCanBeToldApartWithTheirPlaces) {
  const auto picture = test::two_rank_picture();
  const TimelineLayout layout = timeline_layout(*picture, {}, {});
  // 460 pixels for 230 us: two a microsecond.
  const QRect lanes(100, 50, 460, 300);
  const TimelineElements all = visible_elements(*picture, layout, {0, 230 * test::kMicro}, lanes, 0);
  ASSERT_EQ(all.elements.size(), 4u) << "of the rank that is shown: two attentions, one message each way";
  EXPECT_EQ(all.narrower, 0u);
  EXPECT_EQ(all.elements[0].rect.left(), 100);
  EXPECT_EQ(all.elements[0].rect.width(), 200);
  EXPECT_EQ(all.elements[1].rect.left(), 100 + 260);
  EXPECT_EQ(all.elements[2].rect.left(), 100 + 20);
  EXPECT_EQ(all.elements[2].rect.width(), 240);
  EXPECT_GT(all.elements[2].rect.top(), all.elements[0].rect.bottom()) << "another lane";
  // Cut at the window's edge; what lies outside is none.
  const TimelineElements part = visible_elements(*picture, layout, {0, 50 * test::kMicro}, lanes, 0);
  ASSERT_EQ(part.elements.size(), 3u);
  EXPECT_EQ(part.elements[0].rect, QRect(100, part.elements[0].rect.top(), 460, part.elements[0].rect.height()));
  // In 8 pixels attentions are 3.5 wide, messages 4.2: what is drawn one by one starts at four.
  const TimelineElements narrow = visible_elements(*picture, layout, {0, 230 * test::kMicro}, QRect(100, 50, 8, 300), 0);
  EXPECT_EQ(narrow.elements.size(), 2u);
  EXPECT_EQ(narrow.narrower, 2u);
  // Scrolled away.
  EXPECT_TRUE(visible_elements(*picture, layout, {0, 230 * test::kMicro}, lanes, 1000).elements.empty());
}

TEST(TimelineHits, SpansAndEdgesWithinReach) {
  const std::shared_ptr<const StepPicture> picture = two_rank_picture();
  const TimeScale scale{whole(picture->timeline.step), 0, 230};  // a pixel per microsecond
  EXPECT_EQ(span_under(*picture, 0, scale, 50, 2), (SpanRef{0, 0}));
  EXPECT_FALSE(span_under(*picture, 0, scale, 115, 2)) << "between the two";
  EXPECT_EQ(span_under(*picture, 0, scale, 128.5, 2), (SpanRef{0, 1}));
  EXPECT_EQ(edge_near(picture->lane(0), scale, 104, kSnapReach), 100 * kMicro);
  EXPECT_EQ(edge_near(picture->lane(0), scale, 126, kSnapReach), 130 * kMicro);
  EXPECT_FALSE(edge_near(picture->lane(0), scale, 115, kSnapReach));
  EXPECT_EQ(span_nearest(*picture, 0, 110 * kMicro), (SpanRef{0, 0}));
  EXPECT_EQ(span_nearest(*picture, 0, 125 * kMicro), (SpanRef{0, 1}));
}

TEST(RangeSums, AreExact) {
  // 50-140 us of rank 0: computes 50-100 and 130-140 = 60; sends and receives 50-130 = 2 * 80, of which 100-130 exposed on both
  // lanes; each message moves 1 MB in 120 us: 80/120 of it, twice.
  const std::shared_ptr<const StepPicture> picture = two_rank_picture();
  const RangeSums sums = range_sums(*picture, 0, {50 * kMicro, 140 * kMicro});
  EXPECT_EQ(sums.compute, 60 * kMicro);
  EXPECT_EQ(sums.communication, 160 * kMicro);
  EXPECT_EQ(sums.exposed, 60 * kMicro);
  EXPECT_NEAR(sums.bytes, 2e6 * 80 / 120, 1e-3);
  const std::vector<KindSums> kinds = kind_sums(*picture, picture->ranks[0].lanes, {50 * kMicro, 140 * kMicro});
  ASSERT_EQ(kinds.size(), 2U);
  EXPECT_EQ(kinds[0].kind, SpanKind::kAttention);
  EXPECT_EQ(kinds[0].count, 2);
  EXPECT_EQ(kinds[0].sum, 60 * kMicro);
  EXPECT_EQ(kinds[0].least, 100 * kMicro);
  EXPECT_EQ(kinds[1].exposed, 60 * kMicro);
}

TEST(RangeSums, OfAWholeStepAreTheParts) {
  // Every rank of a real step: compute and idle and what was waited for is the step.
  const test::RealStep real = test::real_step("llama3-8b-128k-2nodes.toml", "tp=2,cp=8,pp=1,dp=1");
  ASSERT_TRUE(real.picture);
  const RangeSums sums = range_sums(*real.picture, 0, whole(real.picture->timeline.step));
  EXPECT_EQ(sums.range.length(), real.step->run->makespan);
  EXPECT_LE(sums.compute + sums.exposed, sums.range.length());
  std::int64_t running = 0;
  for (const timeline::ExposureRow& row : real.step->answer.ranks[0].rows) running += row.running;
  EXPECT_EQ(sums.exposed, running) << "the lanes' exposed tails are the answer's";
}

TEST(SpanSearch, WordsAndNumbers) {
  const std::shared_ptr<const StepPicture> picture = two_rank_picture();
  EXPECT_EQ(count_matches(*picture, span_query("exposed")), 4);
  EXPECT_EQ(count_matches(*picture, span_query("ring send")), 2);
  EXPECT_EQ(count_matches(*picture, span_query("rank 1 attention step 2")), 1);
  EXPECT_EQ(count_matches(*picture, span_query("")), 0);
  const SpanQuery attention = span_query("rank 0 attention");
  EXPECT_EQ(find_match(*picture, attention, std::nullopt, 0, 1), (SpanRef{0, 0}));
  EXPECT_EQ(find_match(*picture, attention, SpanRef{0, 0}, 0, 1), (SpanRef{0, 1}));
  EXPECT_EQ(find_match(*picture, attention, SpanRef{0, 1}, 0, 1), (SpanRef{0, 0})) << "round the end";
  EXPECT_EQ(find_match(*picture, attention, SpanRef{0, 0}, 0, -1), (SpanRef{0, 1}));
}

TEST(RecordedLanes, AreAlignedWithTheStepAndCutWhereComputeEnds) {
  // Two marked steps; the second one begins at 1000 us. Compute 1000-1100 on stream 7, communication 1050-1180 on stream 13:
  // hidden until 1100, then exposed for 80 us.
  RecordedTrace trace;
  trace.path = "/data/rank0.json";
  trace.steps = {{"ProfilerStep#1", 0, 1000 * kMicro, true}, {"ProfilerStep#2", 1000 * kMicro, 2000 * kMicro, true}};
  TracedDevice device{"0", 2, {}};
  device.spans.push_back({500 * kMicro, 600 * kMicro, 0, DeviceWork::kCompute});
  device.spans.push_back({1000 * kMicro, 1100 * kMicro, 0, DeviceWork::kCompute});
  device.spans.push_back({1050 * kMicro, 1180 * kMicro, 1, DeviceWork::kCommunication});
  trace.devices.push_back(device);
  const RecordedLanes lanes = recorded_lanes(trace, 0, steps_of(trace)[1]);
  ASSERT_EQ(lanes.lanes.size(), 2U);
  EXPECT_EQ(lanes.note, "ProfilerStep#2 of rank0.json");
  EXPECT_EQ(lanes.length, 180 * kMicro);
  const std::vector<LaneSpan>& sent = lanes.lanes[1].spans;
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent[0].start, 50 * kMicro);
  EXPECT_EQ(sent[0].exposed, 0);
  EXPECT_EQ(sent[1].start, 100 * kMicro);
  EXPECT_EQ(sent[1].exposed, 80 * kMicro);
  const std::shared_ptr<const StepPicture> both = with_recorded(*two_rank_picture(), lanes);
  EXPECT_EQ(both->ranks.back().title, "recorded GPU 0");
  EXPECT_EQ(both->ranks.back().exposed, 80 * kMicro);
}

TEST(InFlight, CountsMicroBatchesBetweenForwardAndBackward) {
  Timeline step;
  step.step = 100;
  step.names = {"k"};
  SpanLane lane{0, "compute", {}};
  const auto add = [&](std::int64_t from, std::int64_t to, std::int16_t micro_batch, SpanPass pass) {
    LaneSpan made;
    made.start = made.posted = from;
    made.end = to;
    made.layer = 0;
    made.micro_batch = micro_batch;
    made.pass = pass;
    made.kind = SpanKind::kCompute;
    lane.spans.push_back(made);
  };
  add(0, 10, 0, SpanPass::kForward);
  add(10, 20, 1, SpanPass::kForward);
  add(20, 40, 0, SpanPass::kBackward);
  add(50, 70, 1, SpanPass::kBackward);
  step.lanes.push_back(lane);
  const std::shared_ptr<const StepPicture> picture = picture_of(step, {{.node = 0, .rank = 0, .stage = 0}});
  EXPECT_EQ(micro_batches_in_flight(*picture, 0), (std::vector<InFlightPoint>{{0, 1}, {10, 2}, {40, 1}, {70, 0}}));
}

}  // namespace
}  // namespace cpfit::gui
