// Exposed time: every rule on a program small enough to be worked out by hand. Each partition must add up to the step.
#include <gtest/gtest.h>

#include "sim/timeline/exposure.h"
#include "sim/timeline/lanes.h"
#include "timeline_fixture.h"

namespace cpfit::timeline {
namespace {

struct Scene {
  engine::Program program;
  engine::Run run;
  explicit Scene(Script& script, const std::map<engine::ActivityId, Picoseconds>& takes = {})
      : program(script.builder.take()), run(by_hand(program, takes)) {}
  [[nodiscard]] RankAnswer answer(std::int32_t rank = 0) const { return rank_answer(History(program, run), rank); }
};

TEST(Exposure, ABusyLinkBesideKernelsCostsNothingAnIdleOneThatIsWaitedForCostsAll) {
  // A: the link runs [0,100), the kernel [0,100): all hidden. 100 bytes on a link of 1 byte/ps: utilisation 1.
  Script a;
  a.ring(0, 1, 100);
  a.kernel(0, 100);
  const Scene hidden(a);
  EXPECT_EQ(hidden.answer().parts.exposed_cp, 0);
  EXPECT_EQ(hidden.answer().parts.compute, 100);
  ASSERT_EQ(hidden.answer().rows.size(), 1u);
  EXPECT_EQ(hidden.answer().rows[0].busy, 100);
  EXPECT_EQ(hidden.answer().rows[0].hidden, 100);
  // B: one byte with a start-up latency of 99 ps before the kernel: utilisation 1 %, all exposed.
  Script b;
  engine::Spec spec;
  spec.tag = b.builder.tag({"message", Work::kMessage, TrafficAxis::kCp, engine::StepPass::kForward});
  spec.fixed = 99;
  spec.amount = 1;
  const engine::ActivityId slow =
      b.builder.add(spec, {b.builder.lane(0, LaneKind::kCpSend), b.builder.lane(1, LaneKind::kCpReceive)});
  b.builder.wait(b.kernel(0, 100), slow);
  const Scene exposed(b);
  EXPECT_EQ(exposed.answer().parts.exposed_cp, 100);
  EXPECT_EQ(exposed.answer().parts.compute, 100);
  EXPECT_EQ(exposed.answer().rows[0].hidden, 0);
}

TEST(Exposure, TheTailBehindAKernelIsExposedTheRestHidden) {
  // Message [0,14) beside kernel [0,10); the next kernel waits for it: 4 exposed, 10 hidden.
  Script s;
  const engine::ActivityId message = s.ring(1, 0, 14, 2);
  s.kernel(0, 10);
  s.builder.wait(s.kernel(0, 10), message);
  const Scene scene(s);
  const RankAnswer answer = scene.answer();
  EXPECT_EQ(answer.parts.compute, 20);
  EXPECT_EQ(answer.parts.exposed_cp, 4);
  EXPECT_EQ(answer.parts.total(), 24);
  ASSERT_EQ(answer.rows.size(), 1u);
  EXPECT_EQ(answer.rows[0].layer, 2);
  EXPECT_EQ(answer.rows[0].bytes_received, 14);
  EXPECT_EQ(answer.rows[0].bytes_sent, 0);
  EXPECT_EQ(answer.rows[0].running, 4);
  EXPECT_EQ(answer.rows[0].hidden, 10);
  Timeline timeline = timeline_of(History(scene.program, scene.run));
  mark_exposed(timeline, answer);
  for (const SpanLane& lane : timeline.lanes) {
    for (const LaneSpan& span : lane.spans) EXPECT_EQ(span.exposed, lane.name == "cp receive" ? 4 : 0) << lane.name;
  }
}

TEST(Exposure, WaitingForALatePeerIsExposedButBubbleInAPipeline) {
  // Rank 1 computes until 30, then sends 5 bytes. Rank 0 posted its receive at 0, its kernel ran [0,10), its next waits: gap
  // [10,35): running 5, waiting 20.
  const auto script = [](TrafficAxis axis) {
    Script s;
    const engine::ActivityId late = s.kernel(1, 30);
    s.kernel(0, 10);
    const LaneKind out = axis == TrafficAxis::kPp ? LaneKind::kPpSend : LaneKind::kCpSend;
    const LaneKind in = axis == TrafficAxis::kPp ? LaneKind::kPpReceive : LaneKind::kCpReceive;
    const engine::ActivityId message = s.message(1, out, 0, in, 5, axis);
    s.builder.wait(message, s.builder.lane(1, out), late);
    s.builder.wait(s.kernel(0, 7), message);
    return s;
  };
  Script ring = script(TrafficAxis::kCp);
  const RankAnswer cp = Scene(ring).answer();
  EXPECT_EQ(cp.parts.exposed_cp, 25);
  EXPECT_EQ(cp.parts.bubble, 0);
  EXPECT_EQ(cp.rows[0].running, 5);
  EXPECT_EQ(cp.rows[0].waiting, 20);
  Script pipeline = script(TrafficAxis::kPp);
  const RankAnswer pp = Scene(pipeline).answer();
  EXPECT_EQ(pp.parts.exposed_pp, 5);
  EXPECT_EQ(pp.parts.bubble, 20);
  EXPECT_EQ(pp.parts.compute, 17);
  EXPECT_EQ(pp.parts.total(), 42);
}

TEST(Exposure, ATransferHeldUpByAnotherIsFollowedBack) {
  // Rank 0: kernel [0,10); TP collective [10,16) of rank 0 and 1; a ring message [16,20) that waits for it; kernel at 20.
  Script s;
  const engine::ActivityId kernel = s.kernel(0, 10);
  engine::Spec spec;
  spec.tag = s.builder.tag({"gather", Work::kCollective, TrafficAxis::kTp, engine::StepPass::kForward});
  spec.amount = 6;
  const engine::ActivityId gather = s.builder.add(spec, {s.builder.lane(0, LaneKind::kTp), s.builder.lane(1, LaneKind::kTp)});
  s.builder.wait(gather, s.builder.lane(0, LaneKind::kTp), kernel);
  const engine::ActivityId message = s.ring(0, 1, 4);
  s.builder.wait(message, s.builder.lane(0, LaneKind::kCpSend), gather);
  s.builder.wait(s.kernel(0, 1), message);
  const RankAnswer answer = Scene(s).answer();
  EXPECT_EQ(answer.parts.exposed_cp, 4);
  EXPECT_EQ(answer.parts.exposed_tp, 6);
  EXPECT_EQ(answer.parts.compute, 11);
  EXPECT_EQ(answer.parts.total(), 21);
}

TEST(Exposure, WhatOnlyTheHostExplainsIsLaunch) {
  // Launches cost 5: kernels of 3 and 3 are launched at 5 and 10. [0,5) launch, [5,8) kernel, [8,10) launch, [10,13) kernel.
  Script s;
  const engine::ActivityId first = s.kernel(0, 3);
  s.builder.launch(first, s.builder.lane(0, LaneKind::kCompute));
  const engine::ActivityId second = s.kernel(0, 3);
  s.builder.launch(second, s.builder.lane(0, LaneKind::kCompute));
  s.builder.launch_cost(5);
  const RankAnswer answer = Scene(s).answer();
  EXPECT_EQ(answer.parts.launch, 7);
  EXPECT_EQ(answer.parts.compute, 6);
  // With a message until 9 the gap before the second kernel is [8,9) message, [9,10) launch.
  Script t;
  const engine::ActivityId message = t.ring(1, 0, 9);
  t.builder.launch(t.kernel(0, 3), t.builder.lane(0, LaneKind::kCompute));
  const engine::ActivityId last = t.kernel(0, 3);
  t.builder.wait(last, message);
  t.builder.launch(last, t.builder.lane(0, LaneKind::kCompute));
  t.builder.launch_cost(5);
  const RankAnswer both = Scene(t).answer();
  EXPECT_EQ(both.parts.launch, 6);
  EXPECT_EQ(both.parts.exposed_cp, 1);
  EXPECT_EQ(both.parts.total(), 13);
}

TEST(Exposure, TheEndOfTheStep) {
  // Rank 0: kernel [0,10), optimizer [10,14), reduce [14,20); rank 1 computes until 25. No pipeline: the last 5 are other.
  Script s;
  s.kernel(0, 10);
  const engine::ActivityId update = s.kernel(0, 4, Work::kOptimizer);
  const engine::ActivityId reduce = s.message(0, LaneKind::kDpReduce, 2, LaneKind::kDpReduce, 6, TrafficAxis::kDp);
  s.builder.wait(reduce, s.builder.lane(0, LaneKind::kDpReduce), update);
  s.kernel(1, 25);
  const Scene scene(s);
  const RankAnswer answer = scene.answer();
  EXPECT_EQ(answer.parts.compute, 10);
  EXPECT_EQ(answer.parts.optimizer, 4);
  EXPECT_EQ(answer.parts.exposed_dp, 6);
  EXPECT_EQ(answer.parts.other, 5);
  EXPECT_EQ(answer.parts.total(), 25);
  EXPECT_EQ(answer.last_kernel, 14);
  EXPECT_EQ(answer.last_activity, 20);
  const StepAnswer step = step_answer(History(scene.program, scene.run));
  EXPECT_EQ(step.rank, 1);
  EXPECT_EQ(step.time.compute, Seconds(std::ldexp(110.0, -42)));  // 25 ps = 109.95 units of 2^-42 s
}

TEST(Exposure, StretchGoesToWhatTookTheMultiprocessors) {
  // The kernel needs 80 ps alone and draws on the SMs. A ring message holds a quarter of them from its posting at 0 to its end at
  // 80: until then the kernel runs at 3/4 and does 60; the other 20 take 20: end 100, stretch 20.
  Script s;
  const engine::ResourceId sm = s.builder.resource({1.0, engine::kNone, 0});
  const engine::PatternId on_sm = s.builder.pattern({{sm, 1.0}});
  engine::Spec ring;
  ring.tag = s.builder.tag({"message", Work::kMessage, TrafficAxis::kCp, engine::StepPass::kForward});
  ring.amount = 80;
  const std::array<engine::LaneId, 2> ends{s.builder.lane(0, LaneKind::kCpSend), s.builder.lane(1, LaneKind::kCpReceive)};
  const std::array<engine::HoldId, 2> holds{s.builder.hold({sm, 0.25}), -1};
  s.builder.add(ring, ends, holds);
  engine::Spec work;
  work.tag = s.builder.tag({"gemm", Work::kGemm, TrafficAxis::kNone, engine::StepPass::kForward});
  work.amount = 80;
  work.pattern = on_sm;
  const engine::ActivityId kernel = s.builder.add(work, {s.builder.lane(0, LaneKind::kCompute)});
  const RankAnswer answer = Scene(s, {{kernel, 100}}).answer();
  EXPECT_EQ(answer.parts.compute, 80);
  EXPECT_EQ(answer.parts.exposed_cp, 20);
  ASSERT_EQ(answer.rows.size(), 1u);
  EXPECT_EQ(answer.rows[0].stretch, 20);
  EXPECT_EQ(answer.rows[0].hidden, 80);  // it ran beside the kernel; what that cost is the stretch
}

TEST(Exposure, StretchOfTwoTakersIsSplitByMomentsTheFirstPostedHasThem) {
  // Kernel [0,100). Ring holds 1/4 during [0,40), TP holds 1/4 during [20,60). Work done: 20 * 3/4 + 20 * 1/2 + 20 * 3/4 + 40
  // = 80. Lost: 5 + 10 + 5 = 20. [20,40) belongs to the ring, posted first: ring 15, TP 5.
  Script s;
  const engine::ResourceId sm = s.builder.resource({1.0, engine::kNone, 0});
  const engine::PatternId on_sm = s.builder.pattern({{sm, 1.0}});
  const engine::HoldId quarter = s.builder.hold({sm, 0.25});
  const std::array<engine::HoldId, 2> holds{quarter, -1};
  engine::Spec ring;
  ring.tag = s.builder.tag({"message", Work::kMessage, TrafficAxis::kCp, engine::StepPass::kForward});
  ring.amount = 40;
  s.builder.add(
      ring, std::array<engine::LaneId, 2>{s.builder.lane(0, LaneKind::kCpSend), s.builder.lane(1, LaneKind::kCpReceive)}, holds);
  const engine::ActivityId start = s.kernel(1, 20);
  engine::Spec gather = ring;
  gather.tag = s.builder.tag({"gather", Work::kCollective, TrafficAxis::kTp, engine::StepPass::kForward});
  const engine::ActivityId tp = s.builder.add(
      gather, std::array<engine::LaneId, 2>{s.builder.lane(0, LaneKind::kTp), s.builder.lane(1, LaneKind::kTp)}, holds);
  s.builder.wait(tp, start);
  engine::Spec work;
  work.tag = s.builder.tag({"gemm", Work::kGemm, TrafficAxis::kNone, engine::StepPass::kForward});
  work.amount = 80;
  work.pattern = on_sm;
  const engine::ActivityId kernel = s.builder.add(work, {s.builder.lane(0, LaneKind::kCompute)});
  const RankAnswer answer = Scene(s, {{kernel, 100}}).answer();
  EXPECT_EQ(answer.parts.exposed_cp, 15);
  EXPECT_EQ(answer.parts.exposed_tp, 5);
  EXPECT_EQ(answer.parts.compute, 80);
}

TEST(Exposure, TwoKernelsThatShareAreCompute) {
  // Two kernels of 40 share the SMs and take 80 each, on two compute lanes: all compute.
  Script s;
  const engine::ResourceId sm = s.builder.resource({1.0, engine::kNone, 0});
  engine::Spec work;
  work.tag = s.builder.tag({"attention", Work::kAttention, TrafficAxis::kNone, engine::StepPass::kForward});
  work.amount = 40;
  work.pattern = s.builder.pattern({{sm, 1.0}});
  const engine::ActivityId a = s.builder.add(work, {s.builder.lane(0, LaneKind::kCompute)});
  const engine::ActivityId b = s.builder.add(work, {s.builder.lane(0, LaneKind::kComputeSide)});
  s.ring(0, 1, 80);  // holds nothing
  const RankAnswer answer = Scene(s, {{a, 80}, {b, 80}}).answer();
  EXPECT_EQ(answer.parts.compute, 80);
  EXPECT_EQ(answer.kernels, 2);
}

TEST(Exposure, RowsOfAnAxisAddUpToItsPart) {
  // Two layers, each a message that the next kernel waits for, hops back to back: [0,6), [6,12); kernels [6,8), [12,14).
  Script s;
  for (std::int32_t layer = 0; layer < 2; ++layer) {
    const engine::ActivityId message = s.ring(1, 0, 6, layer);
    s.builder.wait(s.kernel(0, 2, Work::kAttention, LaneKind::kCompute, layer), message);
  }
  const RankAnswer answer = Scene(s).answer();
  ASSERT_EQ(answer.rows.size(), 2u);
  EXPECT_EQ(answer.rows[0].exposed(), 6);
  EXPECT_EQ(answer.rows[1].exposed(), 4);  // 2 of its 6 beside the first kernel
  EXPECT_EQ(answer.rows[1].hidden, 2);
  EXPECT_EQ(answer.parts.exposed_cp, 10);
  EXPECT_EQ(answer.parts.total(), 14);
}

TEST(Exposure, FoldedStepsAreChargedLikeTheStepsWrittenOut) {
  // Per layer: attention 10 that waits for the message of the layer before (14 bytes, back to back). Layer 0: [0,10); layer l:
  // gap of 4, then 10. Written out 20 layers: compute 200, exposed 19 * 4 = 76, step 276 or the last message's end 280: dp none,
  // so the message behind the last kernel is 4 more: exposed 80.
  const auto program = [](std::int32_t layers, bool folded) {
    Script s;
    engine::ActivityId message = kNone;
    for (std::int32_t l = 0; l < layers; ++l) {
      s.builder.wait(s.kernel(0, 10, Work::kAttention, LaneKind::kCompute, l), message);
      message = s.ring(1, 0, 14, l);
    }
    if (folded) s.builder.section({0, 2, layers, 20, 0});
    return s;
  };
  Script full_script = program(20, false);
  const Scene full(full_script);
  Script short_script = program(3, true);
  Scene folded(short_script);
  folded.run.jumps.push_back({0, 1, 17, 14});
  for (std::size_t a = 4; a < 6; ++a) {
    folded.run.start[a] += 17 * 14;
    folded.run.end[a] += 17 * 14;
  }
  for (std::size_t slot = 6; slot < 9; ++slot) folded.run.posted[slot] += 17 * 14;
  folded.run.makespan = full.run.makespan;
  const RankAnswer expected = full.answer();
  const RankAnswer answer = folded.answer();
  EXPECT_EQ(expected.parts.compute, 200);
  EXPECT_EQ(expected.parts.exposed_cp, 80);
  EXPECT_EQ(answer.parts, expected.parts);
  EXPECT_EQ(answer.rows, expected.rows);
  EXPECT_EQ(answer.kernels, 20);
}

TEST(Exposure, CyclesOfSeveralCopiesAreChargedLikeTheStepsWrittenOut) {
  // Copy c: a message that the kernel waits for. Cycle of two copies, 30 ps: messages [0,6) and [12,20), kernels [6,14) and
  // [20,30). A cycle has 18 of compute, exposed 6 + 6 ([0,6) and [14,20)); hidden 2 ([12,14)). Ten copies: 90 and 60.
  const auto scene = [](std::int32_t held, std::int32_t skipped) {
    Script s;
    for (std::int32_t c = 0; c < held; ++c) {
      const engine::ActivityId message = s.ring(1, 0, 6, c);
      s.builder.wait(s.kernel(0, 8, Work::kAttention, LaneKind::kCompute, c), message);
    }
    if (skipped > 0) s.builder.section({0, 2, held, held + skipped, 0});
    Scene result(s);
    for (std::int32_t c = 0; c < held; ++c) {
      const std::int32_t copy = skipped > 0 && c > 1 ? c + skipped : c;
      const std::size_t message = static_cast<std::size_t>(2 * c);
      const std::size_t slot = static_cast<std::size_t>(3 * c);
      const Picoseconds begin = copy / 2 * 30;
      const bool odd = copy % 2 == 1;
      result.run.start[message] = begin + (odd ? 12 : 0);
      result.run.end[message] = begin + (odd ? 20 : 6);
      result.run.start[message + 1] = result.run.end[message];
      result.run.end[message + 1] = begin + (odd ? 30 : 14);
      result.run.posted[slot] = result.run.posted[slot + 1] = result.run.start[message];
      result.run.posted[slot + 2] = result.run.start[message + 1];
    }
    if (skipped > 0) result.run.jumps.push_back({0, 1, skipped, 30, 2});
    result.run.makespan = 150;
    return result;
  };
  const RankAnswer expected = scene(10, 0).answer();
  const RankAnswer answer = scene(4, 6).answer();
  EXPECT_EQ(expected.parts.compute, 90);
  EXPECT_EQ(expected.parts.exposed_cp, 60);
  EXPECT_EQ(answer.parts, expected.parts);
  EXPECT_EQ(answer.rows, expected.rows);
  EXPECT_EQ(answer.kernels, 10);
  ASSERT_EQ(answer.charges.size(), 10u);
  for (std::size_t c = 0; c < 10; ++c) EXPECT_EQ(answer.charges[c].end, expected.charges[c].end);
}

}  // namespace
}  // namespace cpfit::timeline
