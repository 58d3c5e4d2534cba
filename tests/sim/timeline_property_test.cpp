// What holds for every program: random programs and the real engine, against slow and obvious counting.
#include <gtest/gtest.h>

#include <random>

#include "sim/timeline/critical_path.h"
#include "sim/timeline/exposure.h"
#include "sim/timeline/lanes.h"
#include "sim/timeline/loads.h"
#include "sim/timeline/memory_track.h"
#include "timeline_fixture.h"

namespace cpfit::timeline {
namespace {

/// Kernels on two compute lanes, ring, TP, DP and pipeline traffic between three ranks, with random waits, launches and holds.
engine::Program random_program(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  Script s;
  const bool pipelined = below(2) == 0;
  std::vector<engine::PatternId> on_sm;
  std::vector<engine::HoldId> quarter;
  for (std::int32_t r = 0; r < 3; ++r) {
    const engine::ResourceId sm = s.builder.resource({1.0, kNone, r});
    on_sm.push_back(s.builder.pattern({{sm, 1.0}}));
    quarter.push_back(s.builder.hold({sm, 0.25}));
  }
  for (int n = 0; n < 120; ++n) {
    const std::int32_t r = below(3);
    const std::int32_t other = (r + 1 + below(2)) % 3;
    engine::Spec spec;
    spec.layer = below(4);
    const engine::ActivityId id = s.builder.next_id();
    const auto waits = [&](engine::LaneId lane) {
      for (int w = below(3); w > 0 && id > 0; --w) s.builder.wait(id, lane, std::max(0, id - 1 - below(12)));
      if (below(6) == 0) s.builder.launch(id, lane);
    };
    if (below(2) == 0) {
      const bool optimizer = below(10) == 0;
      spec.tag =
          s.builder.tag({"kernel", optimizer ? Work::kOptimizer : Work::kGemm, TrafficAxis::kNone, engine::StepPass::kForward});
      spec.amount = 1 + below(30);
      spec.pattern = on_sm[static_cast<std::size_t>(r)];
      const engine::LaneId lane = s.builder.lane(r, below(5) == 0 ? LaneKind::kComputeSide : LaneKind::kCompute);
      s.builder.add(spec, {lane});
      waits(lane);
      continue;
    }
    const int kind = below(pipelined ? 4 : 3);
    const TrafficAxis axis =
        std::array{TrafficAxis::kCp, TrafficAxis::kTp, TrafficAxis::kDp, TrafficAxis::kPp}[static_cast<std::size_t>(kind)];
    const LaneKind out =
        std::array{LaneKind::kCpSend, LaneKind::kTp, LaneKind::kDpReduce, LaneKind::kPpSend}[static_cast<std::size_t>(kind)];
    const LaneKind in = std::array{LaneKind::kCpReceive, LaneKind::kTp, LaneKind::kDpReduce,
                                   LaneKind::kPpReceive}[static_cast<std::size_t>(kind)];
    const bool message = kind == 0 || kind == 3;
    spec.tag = s.builder.tag({"transfer", message ? Work::kMessage : Work::kCollective, axis, engine::StepPass::kForward});
    spec.fixed = below(4);
    spec.amount = 1 + below(25);
    const std::array<engine::LaneId, 2> lanes{s.builder.lane(r, out), s.builder.lane(other, in)};
    const std::array<engine::HoldId, 2> holds{quarter[static_cast<std::size_t>(r)], quarter[static_cast<std::size_t>(other)]};
    s.builder.add(spec, lanes, holds);
    waits(lanes[0]);
    waits(lanes[1]);
  }
  s.builder.launch_cost(7);
  return s.builder.take();
}

/// Time during which at least one kernel runs on a compute lane, counted picosecond by picosecond.
Picoseconds kernel_time(const Timeline& timeline, std::int32_t rank) {
  std::vector<bool> runs(static_cast<std::size_t>(timeline.step), false);
  for (const SpanLane& lane : timeline.lanes) {
    if (lane.rank != rank || !lane.name.starts_with("compute")) continue;
    for (const LaneSpan& span : lane.spans) std::fill(runs.begin() + span.start, runs.begin() + span.end, true);
  }
  return std::count(runs.begin(), runs.end(), true);
}

void expect_what_always_holds(const History& history) {
  const Timeline timeline = timeline_of(history);
  const StepAnswer answer = step_answer(history);
  for (const RankAnswer& rank : answer.ranks) {
    EXPECT_EQ(rank.parts.total(), history.step());
    Picoseconds stretch = 0;
    StepParts of_rows;
    Picoseconds charged = 0;
    for (const ExposureRow& row : rank.rows) {
      stretch += row.stretch;
      of_rows.exposed(row.axis) += row.exposed();
      EXPECT_GE(row.hidden, 0);
      EXPECT_EQ(row.hidden + row.running, row.busy);
    }
    for (const Charge& charge : rank.charges) {
      EXPECT_LE(charge.running, history.end(charge.transfer) - history.start(charge.transfer));
      charged += charge.running + charge.waiting;
    }
    EXPECT_EQ(charged + stretch, rank.parts.exposed());
    EXPECT_EQ(of_rows.exposed_cp, rank.parts.exposed_cp);
    EXPECT_EQ(of_rows.exposed_tp, rank.parts.exposed_tp);
    EXPECT_EQ(of_rows.exposed_pp, rank.parts.exposed_pp);
    EXPECT_EQ(of_rows.exposed_dp, rank.parts.exposed_dp);
    EXPECT_EQ(rank.parts.compute + rank.parts.optimizer + stretch, kernel_time(timeline, rank.rank));
  }
  // In any order of adding, to the last bit.
  const TimeBreakdown& t = answer.time;
  EXPECT_EQ(t.step(),
            t.other + t.optimizer + t.launch + t.bubble + t.exposed_dp + t.exposed_pp + t.exposed_tp + t.exposed_cp + t.compute);
  const CriticalPath path = critical_path(history);
  Picoseconds time = 0;
  for (const CriticalLink& link : path.links) {
    EXPECT_EQ(link.start, time + link.launch);
    time = link.end;
  }
  EXPECT_EQ(time, history.step());
  Picoseconds sum = path.launch;
  for (const CriticalSum& s : path.sums) sum += s.time;
  EXPECT_EQ(sum, history.step());
}

TEST(TimelineProperty, RandomProgramsWithRandomTimes) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const engine::Program program = random_program(seed);
    std::mt19937 random(seed);
    std::map<engine::ActivityId, Picoseconds> takes;
    for (std::size_t a = 0; a < program.activities.size(); ++a) {
      if (random() % 3 == 0) takes[static_cast<engine::ActivityId>(a)] = static_cast<Picoseconds>(random() % 60);
    }
    const engine::Run run = by_hand(program, takes);
    expect_what_always_holds(History(program, run));
  }
}

TEST(TimelineProperty, RandomProgramsThroughTheEngine) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const engine::Program program = random_program(seed);
    const Outcome<engine::Run> run = engine::run(program);
    ASSERT_TRUE(run.ok());
    expect_what_always_holds(History(program, *run));
  }
}

/// Forward and backward of `layers` layers on four ranks in a ring: attention per hop on the SMs, hops that hold some of them
/// over shared links, a TP collective per layer; then a DP reduction and the optimizer. `held` copies of each block.
struct RingStep {
  engine::Program program;
  MemoryProgram memory;
  RingStep(std::int32_t held, std::int32_t layers) {
    Script s;
    memory.components = {"activations"};
    memory.names = {"input"};
    memory.resident.assign(4, 1000);
    std::vector<engine::PatternId> on_sm;
    std::vector<engine::PatternId> on_link;
    std::vector<engine::HoldId> holds;
    for (std::int32_t r = 0; r < 4; ++r) {
      const engine::ResourceId sm = s.builder.resource({1.0, kNone, r});
      on_sm.push_back(s.builder.pattern({{sm, 1.0}}));
      holds.push_back(s.builder.hold({sm, 0.125}));
      on_link.push_back(s.builder.pattern({{s.builder.resource({1.0, r, kNone}), 1.0}}));
    }
    std::array<engine::ActivityId, 4> last{kNone, kNone, kNone, kNone};
    for (const bool backward : {false, true}) {
      const engine::StepPass pass = backward ? engine::StepPass::kBackward : engine::StepPass::kForward;
      const engine::ActivityId first = s.builder.next_id();
      for (std::int32_t c = 0; c < held; ++c) {
        const std::int32_t layer = backward ? layers - 1 - c : c;
        std::array<engine::ActivityId, 4> arrived = last;
        for (int hop = 0; hop < 4; ++hop) {
          for (std::int32_t r = 0; r < 4; ++r) {
            engine::Spec spec;
            spec.tag = s.builder.tag({"attention", Work::kAttention, TrafficAxis::kNone, pass});
            spec.amount = (backward ? 2500 : 1000) + 100 * r;
            spec.pattern = on_sm[static_cast<std::size_t>(r)];
            spec.layer = layer;
            last[static_cast<std::size_t>(r)] = s.builder.add(spec, {s.builder.lane(r, LaneKind::kCompute)});
            s.builder.wait(last[static_cast<std::size_t>(r)], arrived[static_cast<std::size_t>(r)]);
            if (hop == 0)
              memory.events.push_back(
                  {r, last[static_cast<std::size_t>(r)], backward ? Moment::kEnd : Moment::kStart, 0, 0, backward ? -8 : 8});
          }
          const std::array<engine::ActivityId, 4> at_hand = arrived;  // what a rank passes on
          for (std::int32_t r = 0; hop < 3 && r < 4; ++r) {
            const std::int32_t to = (r + 1) % 4;
            engine::Spec spec;
            spec.tag = s.builder.tag({"kv", Work::kMessage, TrafficAxis::kCp, pass});
            spec.fixed = 20;
            spec.amount = 1500;
            spec.layer = layer;
            spec.pattern = on_link[static_cast<std::size_t>(r)];
            const std::array<engine::LaneId, 2> lanes{s.builder.lane(r, LaneKind::kCpSend),
                                                      s.builder.lane(to, LaneKind::kCpReceive)};
            const std::array<engine::HoldId, 2> both{holds[static_cast<std::size_t>(r)], holds[static_cast<std::size_t>(to)]};
            const engine::ActivityId message = s.builder.add(spec, lanes, both);
            s.builder.wait(message, lanes[0], at_hand[static_cast<std::size_t>(r)]);
            arrived[static_cast<std::size_t>(to)] = message;
          }
        }
        engine::Spec spec;
        spec.tag = s.builder.tag({"gather", Work::kCollective, TrafficAxis::kTp, pass});
        spec.amount = 300;
        spec.layer = layer;
        std::vector<engine::LaneId> lanes;
        for (std::int32_t r = 0; r < 4; ++r) lanes.push_back(s.builder.lane(r, LaneKind::kTp));
        const engine::ActivityId gather = s.builder.add(spec, lanes);
        for (std::int32_t r = 0; r < 4; ++r)
          s.builder.wait(gather, lanes[static_cast<std::size_t>(r)], last[static_cast<std::size_t>(r)]);
        last.fill(gather);
      }
      s.builder.section({first, (s.builder.next_id() - first) / held, held, layers, 0});
    }
    engine::Spec spec;
    spec.tag = s.builder.tag({"reduce", Work::kCollective, TrafficAxis::kDp, engine::StepPass::kUpdate});
    spec.amount = 5000;
    std::vector<engine::LaneId> lanes;
    for (std::int32_t r = 0; r < 4; ++r) lanes.push_back(s.builder.lane(r, LaneKind::kDpReduce));
    const engine::ActivityId reduce = s.builder.add(spec, lanes);
    s.builder.wait(reduce, last[0]);
    for (std::int32_t r = 0; r < 4; ++r) s.builder.wait(s.kernel(r, 400, Work::kOptimizer), reduce);
    program = s.builder.take();
  }
};

TEST(TimelineProperty, AFoldedStepGivesEveryAnswerOfTheStepWrittenOut) {
  const RingStep full(24, 24);
  const RingStep folded(5, 24);
  const Outcome<engine::Run> full_run = engine::run(full.program);
  const Outcome<engine::Run> folded_run = engine::run(folded.program);
  ASSERT_TRUE(full_run.ok());
  ASSERT_TRUE(folded_run.ok()) << to_text(folded_run.problems().front());
  ASSERT_EQ(folded_run->jumps.size(), 2u);  // else nothing is tested
  ASSERT_EQ(folded_run->makespan, full_run->makespan);
  const History a(full.program, *full_run);
  const History b(folded.program, *folded_run);
  expect_what_always_holds(a);
  expect_what_always_holds(b);

  const StepAnswer expected = step_answer(a);
  const StepAnswer answer = step_answer(b);
  EXPECT_EQ(answer.rank, expected.rank);
  EXPECT_EQ(answer.time, expected.time);
  ASSERT_EQ(answer.ranks.size(), expected.ranks.size());
  for (std::size_t r = 0; r < answer.ranks.size(); ++r) {
    EXPECT_EQ(answer.ranks[r].parts, expected.ranks[r].parts) << r;
    EXPECT_EQ(answer.ranks[r].rows, expected.ranks[r].rows) << r;
    EXPECT_EQ(answer.ranks[r].kernels, expected.ranks[r].kernels) << r;
  }
  // Kernels of rank 0 alone: 24 layers of 4 * 1000 forward and 4 * 2500 backward. What holds took from them is stretch, not
  // compute; each of the 192 kernels may end up to a picosecond late.
  EXPECT_NEAR(static_cast<double>(answer.ranks[0].parts.compute), 24 * 14000, 192);
  EXPECT_EQ(answer.ranks[0].parts.optimizer, 400);
  EXPECT_GT(answer.ranks[0].parts.exposed_cp, 0);
  EXPECT_GT(answer.ranks[0].parts.exposed_tp, 0);
  EXPECT_GT(answer.ranks[0].parts.exposed_dp, 0);

  EXPECT_EQ(edge_loads(b), edge_loads(a));
  EXPECT_EQ(link_uses(b), link_uses(a));
  const CriticalPath long_path = critical_path(a);
  const CriticalPath path = critical_path(b);
  ASSERT_EQ(path.links.size(), long_path.links.size());
  for (std::size_t i = 0; i < path.links.size(); ++i) EXPECT_EQ(path.links[i].start, long_path.links[i].start);
  const std::vector<MemoryTrack> long_tracks = memory_tracks(a, full.memory);
  const std::vector<MemoryTrack> tracks = memory_tracks(b, folded.memory);
  for (std::size_t r = 0; r < tracks.size(); ++r) {
    EXPECT_EQ(tracks[r].points, long_tracks[r].points);
    EXPECT_EQ(tracks[r].peak, 1000 + 24 * 8);
    EXPECT_EQ(tracks[r].alive_at_peak, long_tracks[r].alive_at_peak);
  }

  Timeline long_timeline = timeline_of(a);
  Timeline timeline = timeline_of(b);
  for (std::size_t r = 0; r < answer.ranks.size(); ++r) {
    mark_exposed(long_timeline, expected.ranks[r]);
    mark_exposed(timeline, answer.ranks[r]);
  }
  for (Timeline* t : {&timeline, &long_timeline}) {
    for (SpanLane& lane : t->lanes) {
      for (LaneSpan& span : lane.spans) span.activity = span.copy = 0;
    }
  }
  EXPECT_EQ(timeline, long_timeline);
}

}  // namespace
}  // namespace cpfit::timeline
