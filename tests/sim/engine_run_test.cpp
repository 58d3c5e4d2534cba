// The engine's run: times derived by hand, the properties that hold for every program, and its words on trouble.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <queue>
#include <random>

#include "sim/engine/engine.h"
#include "sim/engine/event_queue.h"
#include "sim/engine/program_builder.h"

namespace cpfit::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Run run_of(const Program& program) {
  Outcome<engine::Run> outcome = run(program);
  for (const Problem& problem : outcome.problems()) ADD_FAILURE() << to_text(problem);
  return std::move(outcome).value();
}

Spec kernel(Picoseconds time, PatternId sms = kNone) { return {.amount = static_cast<double>(time), .cap = 1.0, .pattern = sms}; }

/// Few events stand in a row, many in a heap: the queue goes there and back as its size does.
TEST(EventQueue, GivesEventsInOrderHoweverMany) {
  const auto later = [](const Event& a, const Event& b) { return a.time != b.time ? a.time > b.time : a.key > b.key; };
  std::priority_queue<Event, std::vector<Event>, decltype(later)> expected(later);
  EventQueue queue;
  std::mt19937 random(3);
  Picoseconds now = 0;
  std::uint64_t key = 0;
  std::size_t most = 0;
  int emptied = 0;
  for (const std::size_t wanted : {3U, 30U, 500U, 6U, 0U, 200U, 20U, 60U, 0U}) {
    for (int i = 0; i < 3000; ++i) {
      // Around the size that is wanted; times often coincide, keys never do.
      const bool grows = random() % 8 + expected.size() <= wanted + random() % 8;
      if (grows) {
        const Event event{now + static_cast<Picoseconds>(random() % 40), (random() % 1024U) << 32U | ++key};
        queue.push(event);
        expected.push(event);
      } else if (!expected.empty()) {
        ASSERT_EQ(queue.next_time(), expected.top().time);
        const Event event = queue.pop();
        ASSERT_EQ(event.time, expected.top().time);
        ASSERT_EQ(event.key, expected.top().key);
        now = event.time;
        expected.pop();
      }
      ASSERT_EQ(queue.size(), expected.size());
      ASSERT_EQ(queue.next_time(), expected.empty() ? INT64_MAX : expected.top().time);
      most = std::max(most, expected.size());
      if (expected.empty()) ++emptied;
    }
  }
  EXPECT_GT(most, 400U);
  EXPECT_GT(emptied, 10);
}

TEST(Engine, AnEmptyProgramTakesNoTime) {
  ProgramBuilder builder;
  (void)builder.lane(0, LaneKind::kCompute);  // a lane on which nothing ever happens
  const engine::Run result = run_of(builder.take());
  EXPECT_EQ(result.makespan, 0);
  EXPECT_EQ(result.events, 0);
}

TEST(Engine, UndisturbedKernelsTakeExactlyTheirTime) {
  ProgramBuilder builder;
  const LaneId lane = builder.lane(0, LaneKind::kCompute);
  const PatternId sms = builder.pattern({{builder.resource({1.0, kNone, 0}), 1.0}});
  Picoseconds expected = 0;
  std::vector<Picoseconds> ends;
  for (int i = 0; i < 1000; ++i) {
    const Picoseconds time = 1 + 7919LL * i * i;
    (void)builder.add(kernel(time, i % 2 == 0 ? sms : kNone), {lane});
    expected += time;
    ends.push_back(expected);
  }
  const engine::Run result = run_of(builder.take());
  EXPECT_EQ(result.makespan, expected);
  EXPECT_EQ(result.end, ends);
  EXPECT_EQ(result.events, 3000);  // a posting, a start and an end each
}

TEST(Engine, StopsWhenItIsTold) {
  ProgramBuilder builder;
  const LaneId lane = builder.lane(0, LaneKind::kCompute);
  for (int i = 0; i < 10'000; ++i) (void)builder.add(kernel(1), {lane});
  const Program program = builder.take();
  std::atomic<bool> stop{true};
  const Outcome<engine::Run> stopped = run(program, &stop);
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.problems()[0].code, "engine.stopped");
  stop = false;
  EXPECT_EQ(run(program, &stop)->makespan, 10'000);
}

TEST(Engine, FixedComesFirstThenTheAmountAtItsCapRoundedUp) {
  // 100 + ceil(1000 / 0.3 = 3333.3) = 3434. The second waits: 3434 + 7.
  ProgramBuilder builder;
  const LaneId lane = builder.lane(0, LaneKind::kCpSend);
  const ResourceId link = builder.resource({0.3, 0, kNone});
  (void)builder.add({.fixed = 100, .amount = 1000, .cap = 0.3, .pattern = builder.pattern({{link, 1.0}})}, {lane});
  (void)builder.add({.fixed = 7}, {lane});
  const engine::Run result = run_of(builder.take());
  EXPECT_THAT(result.end, ElementsAre(3434, 3441));
  EXPECT_THAT(result.drawn, ElementsAre(1000.0));
  EXPECT_THAT(result.busy, ElementsAre(3334));  // not while the latency passes
}

TEST(Engine, LatencySharesNothing) {
  // B starts its bytes at 50. A alone until then: 50 bytes done of 100, both at 1/2 until A's 50 are through, 150; B has 50 done
  // of 100 and needs 50 more: 200.
  ProgramBuilder builder;
  const PatternId link = builder.pattern({{builder.resource({1.0, 0, kNone}), 1.0}});
  (void)builder.add({.amount = 100, .pattern = link}, {builder.lane(0, LaneKind::kCpSend)});
  (void)builder.add({.fixed = 50, .amount = 100, .pattern = link}, {builder.lane(1, LaneKind::kCpSend)});
  const engine::Run result = run_of(builder.take());
  EXPECT_THAT(result.end, ElementsAre(150, 200));
  EXPECT_THAT(result.busy, ElementsAre(200));
}

TEST(Engine, AMessageStartsWhenBothEndsArePosted) {
  // The sender is free at 0, the receiver's lane after a kernel of 30: posted 0 and 30, start 30, end 40; a second message
  // follows on the sender's lane and on a third rank's, free since ever: 40 to 50.
  ProgramBuilder builder;
  const LaneId send = builder.lane(0, LaneKind::kCpSend), receive = builder.lane(1, LaneKind::kCpReceive);
  const LaneId other = builder.lane(2, LaneKind::kCpReceive);
  const ActivityId before = builder.add(kernel(30), {receive});
  const ActivityId first = builder.add({.fixed = 10}, {send, receive});
  const ActivityId second = builder.add({.fixed = 10}, {send, other});
  const Program program = builder.take();
  const engine::Run result = run_of(program);
  EXPECT_EQ(result.end[static_cast<std::size_t>(before)], 30);
  EXPECT_EQ(result.start[static_cast<std::size_t>(first)], 30);
  EXPECT_EQ(result.start[static_cast<std::size_t>(second)], 40);
  EXPECT_THAT(result.posted, ElementsAre(0, 0, 30, 40, 0));
}

TEST(Engine, AHoldSlowsTheKernelWhileTheSendStillWaitsForItsPeer) {
  // The send holds 20 % of rank 0's SMs from 0 on although its peer comes at 100 only; it ends at 150. The kernel of 400: 120
  // done at 150 (rate 0.8), 280 more at full speed: 430.
  ProgramBuilder builder;
  const ResourceId sms = builder.resource({1.0, kNone, 0});
  const HoldId hold = builder.hold({sms, 0.2});
  const LaneId compute = builder.lane(0, LaneKind::kCompute), send = builder.lane(0, LaneKind::kCpSend);
  const LaneId receive = builder.lane(1, LaneKind::kCpReceive);
  const ActivityId work = builder.add(kernel(400, builder.pattern({{sms, 1.0}})), {compute});
  (void)builder.add(kernel(100), {receive});
  const std::vector<LaneId> ends{send, receive};
  const std::vector<HoldId> holds{hold, -1};
  const ActivityId message = builder.add({.fixed = 50}, ends, holds);
  const engine::Run result = run_of(builder.take());
  EXPECT_EQ(result.end[static_cast<std::size_t>(message)], 150);
  EXPECT_EQ(result.end[static_cast<std::size_t>(work)], 430);
}

TEST(Engine, TwoKernelsWantMemoryMoreThanThereIs) {
  // Memory gives 3 bytes per ps; a alone wants 2, b 2: both at 3/4 speed. a has 300 ps of work: ends at 400. b had 600: 300 done
  // at 400, alone it needs 300 more: 700.
  ProgramBuilder builder;
  const PatternId memory = builder.pattern({{builder.resource({3.0, kNone, 0}), 2.0}});
  (void)builder.add(kernel(300, memory), {builder.lane(0, LaneKind::kCompute)});
  (void)builder.add(kernel(600, memory), {builder.lane(0, LaneKind::kComputeSide)});
  const engine::Run result = run_of(builder.take());
  EXPECT_THAT(result.end, ElementsAre(400, 700));
  EXPECT_THAT(result.drawn, ElementsAre(1800.0));  // 2 bytes per ps of work
}

TEST(Engine, ASlowedFlowThatIsFreedAgainEndsOnTime) {
  // Three flows of 90 on a link of 1. All at 1/3; c has 10: done at 30. a and b: 80 left each, 1/2: b has only 40 in all, 30
  // left, at
  // 90. a: 50 left, alone, 140.
  ProgramBuilder builder;
  const PatternId link = builder.pattern({{builder.resource({1.0, 0, kNone}), 1.0}});
  const double amounts[] = {90, 40, 10};
  for (int i = 0; i < 3; ++i) (void)builder.add({.amount = amounts[i], .pattern = link}, {builder.lane(i, LaneKind::kCpSend)});
  EXPECT_THAT(run_of(builder.take()).end, ElementsAre(140, 90, 30));
}

TEST(Engine, HostLaunchesAreInOrderAndCostTheirTime) {
  // A launch takes 100. Kernels of 10: launched at 100, 200, 300 (two kernels), 500: the next launch is the fifth.
  ProgramBuilder builder;
  builder.launch_cost(100);
  const LaneId lane = builder.lane(0, LaneKind::kCompute);
  for (int i = 0; i < 4; ++i) {
    const ActivityId a = builder.add(kernel(10), {lane});
    builder.launch(a, lane, i == 2 ? 2 : 1);
  }
  const engine::Run result = run_of(builder.take());
  EXPECT_THAT(result.posted, ElementsAre(100, 200, 300, 500));
  EXPECT_EQ(result.makespan, 510);
}

TEST(Engine, AHostThatReadsAResultLaunchesFromThereOn) {
  // A launch takes 100. Kernels of 10 are launched at 100 and 200; the host reads the second one's result at 210, so that the
  // next two are launched at 310 and 410, not at 300 and 400. Rank 1 reads nothing and launches at 100.
  ProgramBuilder builder;
  builder.launch_cost(100);
  const LaneId lane = builder.lane(0, LaneKind::kCompute), other = builder.lane(1, LaneKind::kCompute);
  for (int i = 0; i < 4; ++i) {
    const ActivityId a = builder.add(kernel(10), {lane});
    builder.launch(a, lane);
    if (i == 1) builder.host_reads(a);
  }
  builder.launch(builder.add(kernel(10), {other}), other);
  EXPECT_THAT(run_of(builder.take()).posted, ElementsAre(100, 200, 310, 410, 100));
}

TEST(Engine, ForeignTrafficWithoutALaneFlowsFromTheBeginning) {
  // Another job's 50 bytes on the same link: both at 1/2 until it has passed at 100; 50 left: 150.
  ProgramBuilder builder;
  const PatternId link = builder.pattern({{builder.resource({1.0, 0, kNone}), 1.0}});
  (void)builder.add({.amount = 100, .pattern = link}, {builder.lane(0, LaneKind::kCpSend)});
  (void)builder.add({.amount = 50, .pattern = link}, std::initializer_list<LaneId>{});
  EXPECT_THAT(run_of(builder.take()).end, ElementsAre(150, 100));
}

TEST(Engine, WaitsThatCannotEndAreReportedAsTheCycle) {
  // y follows x on lane a, z follows y on lane b, and x waits for z.
  ProgramBuilder builder;
  const LaneId a = builder.lane(0, LaneKind::kCpSend), b = builder.lane(1, LaneKind::kCpSend),
               c = builder.lane(2, LaneKind::kCpSend);
  const auto named = [&](const char* name) { return Spec{.tag = builder.tag({name, Work::kMessage}), .fixed = 1, .layer = 4}; };
  const ActivityId fine = builder.add(named("fine"), {a});
  const ActivityId x = builder.add(named("x"), {a});
  const ActivityId y = builder.add(named("y"), {a, b});
  const ActivityId z = builder.add(named("z"), {b, c});
  builder.wait(x, z);
  (void)fine;
  (void)y;
  const Outcome<engine::Run> outcome = run(builder.take());
  ASSERT_FALSE(outcome.ok());
  ASSERT_EQ(outcome.problems().size(), 1U);
  EXPECT_EQ(outcome.problems()[0].code, "engine.cycle");
  EXPECT_EQ(
      outcome.problems()[0].message,
      "activities wait for each other: x (rank 0, layer 4) waits for z (ranks 1 and 2, layer 4) waits for y (ranks 0 and 1, "
      "layer 4) waits for x (rank 0, layer 4)");
}

TEST(Engine, NothingFlowsThroughAResourceOfZero) {
  ProgramBuilder builder;
  const PatternId dead = builder.pattern({{builder.resource({0.0, 17, kNone}), 1.0}});
  const TagId tag = builder.tag({"send kv 2", Work::kMessage});
  for (int i = 0; i < 3; ++i) {
    (void)builder.add({.tag = tag, .amount = 1, .pattern = dead, .layer = i}, {builder.lane(5, LaneKind::kCpSend)});
  }
  (void)builder.add({.tag = tag, .fixed = 9, .amount = 0, .pattern = dead},
                    {builder.lane(6, LaneKind::kCpSend)});  // moves nothing
  (void)builder.add({.tag = tag, .amount = 1, .cap = 0}, {builder.lane(7, LaneKind::kCpSend)});
  const Outcome<engine::Run> outcome = run(builder.take());
  ASSERT_EQ(outcome.problems().size(), 2U);
  EXPECT_EQ(outcome.problems()[1].code, "engine.no_rate");
  EXPECT_EQ(
      outcome.problems()[1].message,
      "send kv 2 (rank 5, layer 0) and 2 more activities can never end: it goes through resource 0 (link 17), whose capacity is "
      "zero");
  EXPECT_THAT(outcome.problems()[0].message, HasSubstr("send kv 2 (rank 7) can never end: the rate"));
}

TEST(Engine, TheClockEndsBeforeItOverflows) {
  ProgramBuilder builder;
  const LaneId lane = builder.lane(0, LaneKind::kCpSend);
  for (int i = 0; i < 9; ++i) (void)builder.add({.amount = 1e12, .cap = 1e-12}, {lane});  // 1 TB at 1 byte/s
  const Outcome<engine::Run> outcome = run(builder.take());
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.problems()[0].code, "engine.too_long");
}

TEST(Engine, AFasterLinkCanMakeAStepLonger) {
  // Graham's anomaly (1969), with streams: what is faster comes earlier and takes the link that the critical path needs.
  // Link 1 of 1 byte/ps is shared by s (100 bytes, on the critical path, ready at 10) and t (100 bytes, uncritical, after m).
  // m goes over link 2. Slow link 2: m takes 200, t starts at 200, s ran alone 10..110, and k (200, after s) ends at 310; t at
  // 300. Link 2 twenty times faster: m takes 10, s and t share from 10 on, s ends at 210, k at 410. The step is a third longer.
  const auto step = [](double rate) {
    ProgramBuilder builder;
    const PatternId one = builder.pattern({{builder.resource({1.0, 1, kNone}), 1.0}});
    const PatternId two = builder.pattern({{builder.resource({rate, 2, kNone}), 1.0}});
    const LaneId a = builder.lane(0, LaneKind::kCpSend), b = builder.lane(1, LaneKind::kCpSend);
    (void)builder.add({.amount = 200, .cap = rate, .pattern = two}, {b});
    (void)builder.add({.amount = 100, .pattern = one}, {b});
    const ActivityId ready = builder.add(kernel(10), {builder.lane(0, LaneKind::kCompute)});
    const ActivityId s = builder.add({.amount = 100, .pattern = one}, {a});
    builder.wait(s, ready);
    const ActivityId k = builder.add(kernel(200), {builder.lane(0, LaneKind::kCompute)});
    builder.wait(k, s);
    return run_of(builder.take()).makespan;
  };
  EXPECT_EQ(step(1.0), 310);
  EXPECT_EQ(step(20.0), 410);
}

/// A random but legal program: kernels on shared SMs, messages between neighbours over shared links, waits backwards.
Program random_program(unsigned seed, double faster) {
  std::mt19937 random(seed);
  const auto pick = [&](int below) { return std::uniform_int_distribution<int>(0, below - 1)(random); };
  ProgramBuilder builder;
  const int ranks = 6;
  std::vector<PatternId> sms, routes;
  std::vector<ResourceId> links;
  std::vector<HoldId> holds;
  for (int r = 0; r < ranks; ++r) {
    const ResourceId gpu = builder.resource({faster, kNone, r});
    sms.push_back(builder.pattern({{gpu, 1.0}}));
    holds.push_back(builder.hold({gpu, 0.125 * faster}));
  }
  for (int i = 0; i < 4; ++i) links.push_back(builder.resource({0.05 * (1 + i) * faster, i, kNone}));
  for (int i = 0; i < 4; ++i) routes.push_back(builder.pattern({{links[static_cast<std::size_t>(i)], 1.0}, {links[0], 0.25}}));
  for (int i = 0; i < 400; ++i) {
    const int rank = pick(ranks);
    const std::size_t r = static_cast<std::size_t>(rank);
    ActivityId added = kNone;
    if (pick(2) == 0) {
      added = builder.add({.amount = static_cast<double>(1000000 * (1 + pick(50))), .cap = faster, .pattern = sms[r]},
                          {builder.lane(rank, LaneKind::kCompute)});
    } else {
      const int peer = (rank + 1 + pick(ranks - 1)) % ranks;
      const std::vector<LaneId> lanes{builder.lane(rank, LaneKind::kCpSend), builder.lane(peer, LaneKind::kCpReceive)};
      const std::vector<HoldId> both{holds[r], holds[static_cast<std::size_t>(peer)]};
      added = builder.add({.fixed = static_cast<Picoseconds>(std::llround(2e6 / faster)),
                           .amount = static_cast<double>(65536 * (1 + pick(16))),
                           .cap = 0.1 * faster,
                           .pattern = routes[static_cast<std::size_t>(pick(4))]},
                          lanes, both);
    }
    if (i > 10) builder.wait(added, added - 1 - pick(10));
  }
  return builder.take();
}

TEST(Engine, IsDeterministic) {
  const Program program = random_program(3, 1.0);
  const engine::Run a = run_of(program), b = run_of(program);
  EXPECT_EQ(a.start, b.start);
  EXPECT_EQ(a.end, b.end);
  EXPECT_EQ(a.posted, b.posted);
  EXPECT_EQ(a.drawn, b.drawn);
  EXPECT_EQ(a.busy, b.busy);
  EXPECT_EQ(a.events, b.events);
}

TEST(Engine, EverythingTwiceAsFastTakesHalfTheTime) {
  // Every event may be off by the rounding of its own few picoseconds; 400 activities one after the other at most, each re-rated
  // a few times: below 10^4 ps of some 10^9.
  for (unsigned seed = 1; seed <= 5; ++seed) {
    const engine::Run once = run_of(random_program(seed, 1.0)), twice = run_of(random_program(seed, 2.0));
    for (std::size_t a = 0; a < once.end.size(); ++a) {
      EXPECT_NEAR(static_cast<double>(twice.end[a]) * 2, static_cast<double>(once.end[a]), 1e4)
          << "seed " << seed << " activity " << a;
    }
  }
}

TEST(Engine, IsNeverBelowTheLowerBounds) {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    const Program program = random_program(seed, 1.0);
    const engine::Run result = run_of(program);
    // Critical path of undisturbed times. Ids are a topological order here: waits and lanes go backwards only.
    std::vector<double> ready(program.slots.size(), 0.0);
    double critical = 0;
    std::vector<double> sent(program.resources.size(), 0.0);
    for (std::size_t a = 0; a < program.activities.size(); ++a) {
      const Activity& activity = program.activities[a];
      double start = 0;
      for (SlotId s = activity.first_slot; s < activity.first_slot + activity.slots; ++s) {
        start = std::max(start, ready[static_cast<std::size_t>(s)]);
      }
      const double end = start + static_cast<double>(activity.fixed) + std::ceil(activity.amount / activity.cap);
      critical = std::max(critical, end);
      const auto tell = [&](SlotId s) {
        if (s != kNone) ready[static_cast<std::size_t>(s)] = std::max(ready[static_cast<std::size_t>(s)], end);
      };
      for (SlotId s = activity.first_slot; s < activity.first_slot + activity.slots; ++s) {
        tell(program.slots[static_cast<std::size_t>(s)].next);
      }
      for (std::uint32_t r = program.release_begin[a]; r < program.release_begin[a + 1]; ++r) tell(program.released[r]);
      const std::size_t p = static_cast<std::size_t>(activity.pattern);
      for (std::uint32_t u = program.pattern_begin[p]; u < program.pattern_begin[p + 1]; ++u) {
        sent[static_cast<std::size_t>(program.uses[u].resource)] += program.uses[u].weight * activity.amount;
      }
      EXPECT_GE(result.end[a] - result.start[a], activity.fixed + static_cast<Picoseconds>(activity.amount / activity.cap));
    }
    EXPECT_GE(static_cast<double>(result.makespan), critical);
    for (std::size_t r = 0; r < sent.size(); ++r) {
      EXPECT_EQ(result.drawn[r], sent[r]);  // whole bytes, weights of 1 and 1/4: no rounding
      EXPECT_LE(result.busy[r], result.makespan);
      // Nothing passes a resource faster than its capacity; a picosecond per activity for rounding.
      EXPECT_GE(static_cast<double>(result.busy[r]) + 400, sent[r] / program.resources[r].capacity);
    }
    // The lanes are in order, the ends of all slots of an activity at once.
    for (const Slot& slot : program.slots) {
      if (slot.next == kNone) continue;
      EXPECT_GE(result.posted[static_cast<std::size_t>(slot.next)], result.end[static_cast<std::size_t>(slot.activity)]);
    }
  }
}

TEST(Engine, DescribesActivitiesInWords) {
  ProgramBuilder builder;
  std::vector<LaneId> lanes;
  for (int r = 0; r < 5; ++r) lanes.push_back(builder.lane(r, LaneKind::kTp));
  const TagId tag = builder.tag({"all-gather", Work::kCollective, TrafficAxis::kTp});
  (void)builder.add({.tag = tag, .layer = 2, .micro_batch = 0, .chunk = 1}, lanes);
  (void)builder.add({.tag = tag}, {lanes[3]});
  const Program program = builder.take();
  EXPECT_EQ(describe(program, 0), "all-gather (ranks 0, 1 and 3 more, layer 2, micro-batch 0, chunk 1)");
  EXPECT_EQ(describe(program, 1), "all-gather (rank 3)");
}

}  // namespace
}  // namespace cpfit::engine
