// Folding: a program that holds a few copies of a section and stands for many must agree, to the picosecond, with the program
// that holds them all.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "sim/engine/engine.h"
#include "sim/engine/program_builder.h"

namespace cpfit::engine {
namespace {

struct Shape {
  int ranks = 4;
  std::vector<Picoseconds> compute;  // per rank and layer
  std::vector<Picoseconds> before;   // per rank: what comes before the section; the drift at its beginning
  double bytes = 1000;               // per message
  double link = 1.0;                 // bytes per ps
  bool one_link = false;             // all messages over one link of twice the rate: contention
  double hold = 0;                   // of the SMs, by messages
  Picoseconds launch_cost = 0;
  bool counter = false;  // an activity at the end waits for every layer
  int longest_cycle = 1;
  int layers = 40;  // what the program stands for
};

/// Layers of a ring: each rank computes twice, sends to the next rank between, and its second kernel waits for what it received.
Program ring(const Shape& shape, int copies) {
  ProgramBuilder builder;
  builder.launch_cost(shape.launch_cost);
  std::vector<LaneId> compute, send, receive;
  std::vector<PatternId> sms, route;
  std::vector<HoldId> hold;
  const PatternId shared = builder.pattern({{builder.resource({2 * shape.link, 0, kNone}), 1.0}});
  for (int r = 0; r < shape.ranks; ++r) {
    compute.push_back(builder.lane(r, LaneKind::kCompute));
    send.push_back(builder.lane(r, LaneKind::kCpSend));
    receive.push_back(builder.lane(r, LaneKind::kCpReceive));
    const ResourceId gpu = builder.resource({1.0, kNone, r});
    sms.push_back(builder.pattern({{gpu, 1.0}}));
    hold.push_back(builder.hold({gpu, shape.hold}));
    route.push_back(shape.one_link ? shared : builder.pattern({{builder.resource({shape.link, 1 + r, kNone}), 1.0}}));
  }
  const auto kernel = [&](int r, Picoseconds time, int layer) {
    const std::size_t rank = static_cast<std::size_t>(r);
    const ActivityId id =
        builder.add({.amount = static_cast<double>(time), .pattern = sms[rank], .layer = layer}, {compute[rank]});
    if (shape.launch_cost > 0) builder.launch(id, compute[rank]);
    return id;
  };
  for (int r = 0; r < shape.ranks; ++r) (void)kernel(r, shape.before[static_cast<std::size_t>(r)], -1);
  const ActivityId first = builder.next_id();
  std::vector<ActivityId> last_of_layer;
  for (int layer = 0; layer < copies; ++layer) {
    std::vector<ActivityId> sent;
    for (int r = 0; r < shape.ranks; ++r) {
      const std::size_t rank = static_cast<std::size_t>(r), next = static_cast<std::size_t>((r + 1) % shape.ranks);
      const ActivityId before = builder.last_on(compute[rank]);
      (void)kernel(r, shape.compute[rank], layer);
      const std::vector<LaneId> lanes{send[rank], receive[next]};
      const std::vector<HoldId> holds{hold[rank], hold[next]};
      sent.push_back(builder.add({.fixed = 5, .amount = shape.bytes, .cap = shape.link, .pattern = route[rank], .layer = layer},
                                 lanes, shape.hold > 0 ? std::span<const HoldId>(holds) : std::span<const HoldId>()));
      builder.wait(sent.back(), send[rank], before);
    }
    for (int r = 0; r < shape.ranks; ++r) {
      const ActivityId id = kernel(r, shape.compute[static_cast<std::size_t>(r)] / 2, layer);
      builder.wait(id, sent[static_cast<std::size_t>((r + shape.ranks - 1) % shape.ranks)]);
      if (r == 0) last_of_layer.push_back(id);
    }
  }
  const std::int32_t stride = static_cast<std::int32_t>(builder.next_id() - first) / copies;
  builder.section({first, stride, copies, shape.layers, 0, shape.longest_cycle});
  for (int r = 0; r < shape.ranks; ++r) (void)kernel(r, 777, -1);
  if (shape.counter) {
    const ActivityId sum = builder.add({.fixed = 11}, {builder.lane(0, LaneKind::kDpReduce)});
    for (const ActivityId id : last_of_layer) builder.wait(sum, id);
  }
  return builder.take();
}

engine::Run run_of(const Program& program) {
  Outcome<engine::Run> outcome = run(program);
  for (const Problem& problem : outcome.problems()) ADD_FAILURE() << to_text(problem);
  return outcome.ok() ? std::move(outcome).value() : engine::Run{};
}

/// Runs both and compares everything, the skipped copies too. Answers the jump.
Jump expect_equal(const Shape& shape, int copies) {
  const Program few = ring(shape, copies), all = ring(shape, shape.layers);
  const engine::Run folded = run_of(few), whole = run_of(all);
  if (folded.jumps.size() != 1) {
    ADD_FAILURE() << "jumps: " << folded.jumps.size();
    return {};
  }
  EXPECT_TRUE(whole.jumps.empty());
  const Jump jump = folded.jumps[0];
  EXPECT_EQ(jump.skipped, shape.layers - copies);
  EXPECT_EQ(folded.makespan, whole.makespan);
  EXPECT_EQ(folded.drawn, whole.drawn);
  EXPECT_EQ(folded.busy, whole.busy);
  const Section section = few.sections[0];
  const auto same = [&](ActivityId mine, ActivityId theirs, Picoseconds later) {
    const std::size_t a = static_cast<std::size_t>(mine), b = static_cast<std::size_t>(theirs);
    EXPECT_EQ(folded.start[a] + later, whole.start[b]) << mine << " for " << theirs;
    EXPECT_EQ(folded.end[a] + later, whole.end[b]) << mine << " for " << theirs;
    for (std::uint16_t i = 0; i < few.activities[a].slots; ++i) {
      EXPECT_EQ(folded.posted[static_cast<std::size_t>(few.activities[a].first_slot + i)] + later,
                whole.posted[static_cast<std::size_t>(all.activities[b].first_slot + i)])
          << mine << " for " << theirs;
    }
  };
  const std::int32_t skipped_ids = jump.skipped * section.stride;
  for (ActivityId id = 0; id < static_cast<ActivityId>(few.activities.size()); ++id) {
    same(id, id < section.first + (jump.after + 1) * section.stride ? id : id + skipped_ids, 0);
  }
  for (std::int32_t k = 1; k <= jump.skipped; ++k) {
    for (std::int32_t i = 0; i < section.stride; ++i) {
      const ActivityId id = section.first + jump.after * section.stride + i;
      const std::int32_t back = jump.cycle - 1 - (k - 1) % jump.cycle;  // copies before `after`
      same(id - back * section.stride, id + k * section.stride, ((k - 1) / jump.cycle + 1) * jump.period);
    }
  }
  return jump;
}

TEST(Fold, EqualRanksRepeatAtOnce) {
  // Each layer: 300, then half of it after the message of 5 + 100 (hidden): 450. All layers alike from the second on.
  const Jump jump = expect_equal({.ranks = 4, .compute = {300, 300, 300, 300}, .before = {50, 50, 50, 50}, .bytes = 100}, 4);
  EXPECT_EQ(jump.period, 450);
  EXPECT_EQ(jump.after, 1);  // the first copy's receives were posted before its time
}

TEST(Fold, MessagesThatSetThePace) {
  // A message of 5 + 1000, sent once the layer before is done; the second kernel of 150 after it: 1155.
  const Jump jump = expect_equal({.ranks = 4, .compute = {300, 300, 300, 300}, .before = {0, 0, 0, 0}}, 4);
  EXPECT_EQ(jump.period, 5 + 1000 + 150);
}

TEST(Fold, RanksThatDriftApartUntilTheRingHoldsThem) {
  // The slowest rank sets the pace: 1.5 * 340 = 510. The others run ahead, 45 per layer or more, until they wait for it across
  // the ring: at most three layers ahead, 1530, which takes the slowest of them 34 layers.
  const Jump jump =
      expect_equal({.ranks = 4, .compute = {300, 310, 340, 290}, .before = {10, 500, 900, 90}, .bytes = 20, .layers = 100}, 50);
  EXPECT_EQ(jump.period, 510);
  EXPECT_GT(jump.after, 3);
}

TEST(Fold, ContentionWithHolds) {
  // All messages over one link, kernels slowed by messages that wait.
  (void)expect_equal(
      {.ranks = 4, .compute = {300, 300, 300, 300}, .before = {50, 50, 50, 50}, .bytes = 300, .one_link = true, .hold = 0.1}, 6);
  (void)expect_equal({.ranks = 3,
                      .compute = {1000, 900, 1100},
                      .before = {50, 70, 20},
                      .bytes = 640,
                      .one_link = true,
                      .hold = 0.125,
                      .layers = 100},
                     40);
}

TEST(Fold, LaunchBound) {
  // Two launches a layer of 1000 each against 450 of work: the host sets the pace, 2000 exactly. Messages run a layer
  // ahead of the kernels that are launched, so the last layer does not count among the equal ones: five copies.
  const Jump jump =
      expect_equal({.ranks = 2, .compute = {300, 300}, .before = {50, 50}, .bytes = 100, .launch_cost = 1000, .layers = 64}, 5);
  EXPECT_EQ(jump.period, 2000);
}

TEST(Fold, LaunchesThatFallBehindTheDevice) {
  // The host needs 100 per layer, the device 450: bound at the beginning only, then never again; later launches are late in
  // number, not in time.
  const Jump jump =
      expect_equal({.ranks = 2, .compute = {300, 300}, .before = {10, 10}, .bytes = 100, .launch_cost = 50, .layers = 64}, 6);
  EXPECT_EQ(jump.period, 450);
}

TEST(Fold, OneRankIsBoundByItsLaunchesAndTheOtherWaitsForIt) {
  // Both ranks launch equally; rank 1's kernels are longer than its launches, rank 0's shorter.
  const Jump jump =
      expect_equal({.ranks = 2, .compute = {100, 1200}, .before = {10, 10}, .bytes = 100, .launch_cost = 700, .layers = 50}, 30);
  EXPECT_EQ(jump.period, 1800);
}

TEST(Fold, WhoCountsTheLayersDoesNotHinder) {
  const Jump jump =
      expect_equal({.ranks = 2, .compute = {300, 300}, .before = {50, 50}, .bytes = 100, .counter = true, .layers = 33}, 4);
  EXPECT_EQ(jump.period, 450);
}

TEST(Fold, ManyDrifts) {
  // Every combination of a slow rank, an offset and contention; each must find its period and be equal.
  for (int slow = 0; slow < 3; ++slow) {
    for (const Picoseconds offset : {0, 333, 5000}) {
      for (const bool one_link : {false, true}) {
        Shape shape{.ranks = 3, .compute = {400, 400, 400}, .before = {1, 1 + offset, 1}, .bytes = 256, .one_link = one_link};
        shape.compute[static_cast<std::size_t>(slow)] = 460;
        SCOPED_TRACE(testing::Message() << "slow " << slow << " offset " << offset << " one link " << one_link);
        (void)expect_equal(shape, 20);
      }
    }
  }
}

TEST(Fold, OffsetsThatGoRoundTheRing) {
  // Messages set the pace, so a late start is handed from rank to rank and comes back after four layers: never the same state in
  // successive copies, always after four.
  Shape shape{.ranks = 4, .compute = {300, 300, 300, 300}, .before = {0, 500, 100, 900}};
  const Outcome<engine::Run> refused = run(ring(shape, 20));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.problems()[0].code, "engine.no_period");
  shape.longest_cycle = 4;
  EXPECT_EQ(expect_equal(shape, 20).cycle, 4);
}

TEST(Fold, RandomShapesFoldExactlyOrNotAtAll) {
  int folded = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    std::mt19937 random(seed);
    const auto pick = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
    Shape shape;
    shape.ranks = 2 + pick(4);
    for (int r = 0; r < shape.ranks; ++r) {
      shape.compute.push_back(2 * (100 + pick(3) * 50));
      shape.before.push_back(1 + pick(400));
    }
    shape.bytes = 16 * (1 + pick(60));
    shape.link = pick(2) == 0 ? 1.0 : 0.75;
    shape.one_link = pick(2) == 0;
    shape.hold = pick(2) == 0 ? 0.0 : 0.125;
    shape.launch_cost = pick(3) == 0 ? 50 * (1 + pick(8)) : 0;
    shape.counter = pick(2) == 0;
    shape.longest_cycle = shape.ranks;
    shape.layers = 160;  // 60 more than the copies: a multiple of every cycle up to 5
    const int copies = 100;
    const Outcome<engine::Run> outcome = run(ring(shape, copies));
    if (!outcome.ok()) {
      EXPECT_EQ(outcome.problems()[0].code, "engine.no_period");
      continue;
    }
    ++folded;
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    (void)expect_equal(shape, copies);
  }
  EXPECT_GT(folded, 100);  // of 150: most
}

TEST(Fold, TooFewCopiesAreAProblemNotAGuess) {
  // A rank that starts 5000 late is caught up with by the others within two layers; two copies are too few to see the same state
  // twice.
  const Shape shape{.ranks = 4, .compute = {300, 310, 340, 290}, .before = {10, 500, 900, 90}, .bytes = 20};
  const Outcome<engine::Run> outcome = run(ring(shape, 2));
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.problems()[0].code, "engine.no_period");
}

TEST(Fold, TwoSectionsJumpOneAfterTheOther) {
  // Forward layers of 10, backward layers of 20, one lane: 100 * 10 + 50 * 20 = 2000.
  ProgramBuilder builder;
  const LaneId lane = builder.lane(0, LaneKind::kCompute);
  const auto section = [&](Picoseconds time, int copies, int stands_for) {
    const ActivityId first = builder.next_id();
    for (int i = 0; i < copies; ++i) (void)builder.add({.amount = static_cast<double>(time)}, {lane});
    builder.section({first, 1, copies, stands_for, 0});
  };
  section(10, 4, 100);
  section(20, 3, 50);
  const engine::Run result = run_of(builder.take());
  EXPECT_EQ(result.makespan, 2000);
  ASSERT_EQ(result.jumps.size(), 2U);
  EXPECT_EQ(result.jumps[1].period, 20);
  EXPECT_EQ(result.end[3], 1000);
  EXPECT_EQ(result.end[4], result.jumps[1].after == 0 ? 1020 : 1960);
}

}  // namespace
}  // namespace cpfit::engine
