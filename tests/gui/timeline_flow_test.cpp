// What belongs to a span: its partner, its cause, the way of a KV block; recompute; memory beside the lanes.
#include "gui/timeline/span_flow.h"
#include "gui/timeline/span_text.h"
#include "gui/timeline/timeline_state.h"
#include "small_step.h"

namespace cpfit::gui {
namespace {

using test::kMicro;

TEST(SpanFlow, PartnersAreEachOthers) {
  const std::shared_ptr<const StepPicture> picture = test::two_rank_picture();
  const SpanRef send{1, 0};
  const std::optional<SpanRef> received = partner_of(*picture, send);
  ASSERT_TRUE(received);
  EXPECT_EQ(picture->lane(received->lane).rank, 1);
  EXPECT_FALSE(span_of(*picture, *received).sends);
  EXPECT_EQ(partner_of(*picture, *received), send);
  EXPECT_FALSE(partner_of(*picture, SpanRef{0, 0})) << "a kernel has none";
}

class RealFlow : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    real = std::make_unique<test::RealStep>(test::real_step("llama3-8b-128k-2nodes.toml", "tp=2,cp=8,pp=1,dp=1,recompute=full"));
  }
  static void TearDownTestSuite() { real.reset(); }
  static std::unique_ptr<test::RealStep> real;
  [[nodiscard]] const StepPicture& picture() const { return *real->picture; }
  /// The nth span of a rank with that name.
  [[nodiscard]] std::optional<SpanRef> named(std::int32_t rank, const std::string& name, bool sends) const {
    for (const std::int32_t lane : picture().ranks[static_cast<std::size_t>(rank)].lanes) {
      const std::vector<LaneSpan>& spans = picture().lane(lane).spans;
      for (std::size_t s = 0; s < spans.size(); ++s) {
        if (picture().timeline.names[static_cast<std::size_t>(spans[s].name)] == name && spans[s].sends == sends &&
            spans[s].layer == 7)
          return SpanRef{lane, s};
      }
    }
    return std::nullopt;
  }
};
std::unique_ptr<test::RealStep> RealFlow::real;

TEST_F(RealFlow, ABlockVisitsEveryRankOfTheRingOnce) {
  ASSERT_TRUE(real->picture);
  const std::optional<SpanRef> send = named(3, "send kv 4", true);
  ASSERT_TRUE(send);
  const std::vector<SpanRef> hops = block_hops(picture(), *send);
  ASSERT_EQ(hops.size(), 7U) << "eight ranks, seven hops";
  EXPECT_EQ(hops[4], *send);
  std::vector<std::int32_t> seen;
  for (std::size_t i = 0; i < hops.size(); ++i) {
    const LaneSpan& span = span_of(picture(), hops[i]);
    if (i > 0) {
      EXPECT_EQ(span_of(picture(), hops[i - 1]).peer, picture().lane(hops[i].lane).rank);
      EXPECT_GE(span.start, span_of(picture(), hops[i - 1]).end) << "a block goes on only when it has come";
    }
    seen.push_back(picture().lane(hops[i].lane).rank);
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(std::unique(seen.begin(), seen.end()), seen.end());
  EXPECT_EQ(block_hops(picture(), *partner_of(picture(), *send)), hops) << "from the receiving end too";
}

TEST_F(RealFlow, CausesEndWhenTheirEffectsArePosted) {
  ASSERT_TRUE(real->picture);
  int found = 0;
  for (const std::int32_t lane : picture().ranks[2].lanes) {
    const std::vector<LaneSpan>& spans = picture().lane(lane).spans;
    for (std::size_t s = 1; s < spans.size(); s += 97) {
      const std::optional<SpanRef> cause = cause_of(picture(), SpanRef{lane, s});
      if (!cause) continue;
      EXPECT_LE(span_of(picture(), *cause).end, spans[s].start);
      ++found;
    }
  }
  EXPECT_GT(found, 20);
}

TEST_F(RealFlow, RecomputedKernelsAreMarkedInBackwardOnly) {
  ASSERT_TRUE(real->picture);
  std::int64_t recomputed = 0, forward = 0;
  for (const std::int32_t lane : picture().ranks[0].lanes) {
    const std::vector<LaneSpan>& spans = picture().lane(lane).spans;
    for (std::size_t s = 0; s < spans.size(); ++s) {
      const bool kernel = spans[s].kind == SpanKind::kAttention || spans[s].kind == SpanKind::kCompute;
      if (picture().marked(lane, s, kRecomputed)) {
        EXPECT_EQ(spans[s].pass, SpanPass::kBackward);
        EXPECT_TRUE(kernel);
        ++recomputed;
      }
      forward += kernel && spans[s].pass == SpanPass::kForward && spans[s].layer >= 0 ? 1 : 0;
    }
  }
  EXPECT_EQ(recomputed, forward) << "full recompute repeats every kernel of forward";
}

TEST_F(RealFlow, TheCriticalPathIsMarkedFromEndToEnd) {
  ASSERT_TRUE(real->picture);
  std::int64_t last = 0, marked = 0;
  for (std::size_t l = 0; l < picture().timeline.lanes.size(); ++l) {
    const std::vector<LaneSpan>& spans = picture().timeline.lanes[l].spans;
    for (std::size_t s = 0; s < spans.size(); ++s) {
      if (!picture().marked(static_cast<std::int32_t>(l), s, kCritical)) continue;
      last = std::max(last, spans[s].end);
      marked += spans[s].end - spans[s].start;
    }
  }
  EXPECT_EQ(last, real->step->run->makespan);
  EXPECT_GT(marked, real->step->run->makespan / 2);
}

TEST_F(RealFlow, SentencesNameStepAndPeer) {
  ASSERT_TRUE(real->picture);
  const std::optional<SpanRef> send = named(3, "send kv 4", true);
  ASSERT_TRUE(send);
  const QString sentence = span_sentence(picture(), *send);
  // Rank 3 of the ring is rank 6 of the cluster (tp 2), its neighbour rank 8.
  EXPECT_TRUE(sentence.startsWith("rank 6, ring send, KV of step 5 of 7 to rank 8, layer 7")) << sentence.toStdString();
  EXPECT_EQ(span_labels(picture(), *send).front(), QStringLiteral("KV → 8"));
  const std::optional<SpanRef> kernel = named(3, "attention 4", false);
  ASSERT_TRUE(kernel);
  EXPECT_EQ(span_labels(picture(), *kernel)[1], "attn 5/8");
}

TEST_F(RealFlow, MemoryByComponentAddsUpToTheTrack) {
  ASSERT_TRUE(real->picture);
  const std::shared_ptr<const StepTracks> tracks = tracks_of(*real->bench, real->scenario->training, *real->step, {0}, 4);
  ASSERT_EQ(tracks->memory.size(), 1U);
  const MemoryStack& stack = tracks->memory.front();
  for (std::size_t p = 0; p < stack.totals.size(); ++p) {
    std::int64_t sum = 0;
    for (std::size_t c = 0; c < stack.components.size(); ++c) sum += stack.part(p, c);
    ASSERT_EQ(sum, stack.totals[p]);
  }
  EXPECT_EQ(stack.totals.back(), stack.resident) << "what a step allocates it frees";
  // Zoomed out to eight columns the peak is still there.
  std::int64_t highest = 0;
  for (const StackColumn& column : stack_columns(stack, whole(picture().timeline.step), 8))
    highest = std::max(highest, column.highest);
  EXPECT_EQ(highest, stack.totals[stack.peak]);
  ASSERT_FALSE(tracks->links.empty());
  // The mean over the whole step times the step is what the link carried.
  const LinkTrack& link = tracks->links.front();
  const std::vector<RateColumn> columns = rate_columns(link, whole(picture().timeline.step), 1);
  const double seconds = static_cast<double>(picture().timeline.step) * 1e-12;
  EXPECT_NEAR(columns[0].mean * 1e9 * seconds / link.bytes, 1.0, 1e-6);
}

TEST(StackColumns, AgreeWithASlowLook) {
  std::mt19937 random(7);
  MemoryStack stack;
  stack.components = {Component::kActivations};
  std::int64_t at = 0;
  for (int i = 0; i < 200; ++i) {
    stack.times.push_back(at);
    stack.totals.push_back(static_cast<std::int64_t>(random() % 1000));
    at += static_cast<std::int64_t>(random() % 4);  // some points share an instant
  }
  stack.parts = stack.totals;
  for (int round = 0; round < 40; ++round) {
    const std::int64_t from = static_cast<std::int64_t>(random() % 200);
    const std::size_t count = 1 + random() % 30;
    const TimeWindow window{from, from + static_cast<std::int64_t>(count + random() % 300)};
    const std::vector<StackColumn> columns = stack_columns(stack, window, count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t left =
          window.from + window.length() / static_cast<std::int64_t>(count) * static_cast<std::int64_t>(i) +
          window.length() % static_cast<std::int64_t>(count) * static_cast<std::int64_t>(i) / static_cast<std::int64_t>(count);
      const std::int64_t right = window.from +
                                 window.length() / static_cast<std::int64_t>(count) * static_cast<std::int64_t>(i + 1) +
                                 window.length() % static_cast<std::int64_t>(count) * static_cast<std::int64_t>(i + 1) /
                                     static_cast<std::int64_t>(count);
      std::int64_t highest = -1;
      for (std::size_t p = 0; p < stack.times.size(); ++p) {
        // A point holds from its instant to the next point's; of points at one instant every one counts.
        const bool begins = stack.times[p] >= left && stack.times[p] < right;
        const bool holds =
            stack.times[p] < std::max(right, left + 1) && (p + 1 == stack.times.size() || stack.times[p + 1] > left);
        if (begins || holds) highest = std::max(highest, stack.totals[p]);
      }
      EXPECT_EQ(columns[i].highest, highest) << round << " " << i;
    }
  }
}

TEST(TimelineState, StepsFlowsAndGoesBack) {
  TimelineState state;
  state.set_picture(test::two_rank_picture());
  EXPECT_EQ(state.window(), whole(230 * kMicro));
  state.step_span(1);
  ASSERT_TRUE(state.selected());
  EXPECT_EQ(*state.selected(), (SpanRef{0, 0}));
  state.step_span(1);
  EXPECT_EQ(*state.selected(), (SpanRef{0, 1}));
  state.fit_selection();
  // 100 us and 15 % on both sides: 130 us, kept inside the step: it ends at 230 us.
  EXPECT_EQ(state.window(), (TimeWindow{100 * kMicro, 230 * kMicro}));
  EXPECT_TRUE(state.back());
  EXPECT_EQ(state.window(), whole(230 * kMicro));
  EXPECT_TRUE(state.forward());
  state.range_from_selection();
  ASSERT_TRUE(state.range());
  EXPECT_EQ(state.range()->time, (TimeWindow{130 * kMicro, 230 * kMicro}));
  EXPECT_TRUE(state.clear());
  EXPECT_FALSE(state.range());
  EXPECT_TRUE(state.clear());
  EXPECT_FALSE(state.selected());
  EXPECT_FALSE(state.clear());
}

TEST(TimelineState, AGestureIsOneStepOfTheHistory) {
  TimelineState state;
  state.set_picture(test::two_rank_picture());
  state.zoom(0.9, 0.5);
  state.zoom(0.9, 0.5);
  state.zoom(0.9, 0.5);
  state.settle();
  const TimeWindow after = state.window();
  state.pan(0.1);
  state.settle();
  EXPECT_TRUE(state.back());
  EXPECT_EQ(state.window(), after);
  EXPECT_TRUE(state.back());
  EXPECT_EQ(state.window(), whole(230 * kMicro));
  EXPECT_FALSE(state.can_go_back());
}

TEST(TimelineState, SelectionSurvivesANewPicture) {
  TimelineState state;
  state.set_picture(test::two_rank_picture());
  state.select(SpanRef{0, 1}, false);
  Timeline slower = test::two_ranks();
  slower.lanes[0].spans[1].end += 5 * kMicro;
  slower.step += 5 * kMicro;
  state.set_picture(picture_of(slower, {{.node = 0, .rank = 0, .stage = 0}, {.node = 0, .rank = 1, .stage = 0}}));
  ASSERT_TRUE(state.selected());
  EXPECT_EQ(span_of(*state.picture(), *state.selected()).end, 235 * kMicro);
}

}  // namespace
}  // namespace cpfit::gui
