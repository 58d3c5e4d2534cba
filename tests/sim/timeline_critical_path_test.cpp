// The chain that determines the step, on programs worked out by hand; loads of edges and links.
#include <gtest/gtest.h>

#include "sim/timeline/critical_path.h"
#include "sim/timeline/loads.h"
#include "timeline_fixture.h"

namespace cpfit::timeline {
namespace {

Picoseconds length_of(const CriticalPath& path) {
  Picoseconds sum = path.launch;
  for (const CriticalLink& link : path.links) sum += link.end - link.start;
  return sum;
}

TEST(CriticalPath, GoesThroughTheLatePeer) {
  // Rank 1: kernel a [0,30). Message b, posted by rank 0 at 10 behind its kernel c [0,10) and by rank 1 at 30: [30,35). Rank 0:
  // kernel d [35,42) waits for b. Path: a, b (late peer: rank 1), d.
  Script s;
  const engine::ActivityId a = s.kernel(1, 30);
  const engine::ActivityId c = s.kernel(0, 10);
  const engine::ActivityId b = s.ring(1, 0, 5);
  s.builder.wait(b, s.builder.lane(1, LaneKind::kCpSend), a);
  s.builder.wait(b, s.builder.lane(0, LaneKind::kCpReceive), c);
  const engine::ActivityId d = s.kernel(0, 7);
  s.builder.wait(d, b);
  const engine::Program program = s.builder.take();
  const engine::Run run = by_hand(program);
  const History history(program, run);
  const CriticalPath path = critical_path(history);
  ASSERT_EQ(path.links.size(), 3u);
  EXPECT_EQ(path.links[0].instance.activity, a);
  EXPECT_EQ(path.links[0].reason, StartReason::kBegin);
  EXPECT_EQ(path.links[1].instance.activity, b);
  EXPECT_EQ(path.links[1].reason, StartReason::kWait);
  EXPECT_TRUE(path.links[1].late_peer);
  EXPECT_EQ(path.links[1].rank, 1);
  EXPECT_EQ(path.links[2].instance.activity, d);
  EXPECT_FALSE(path.links[2].late_peer);
  EXPECT_EQ(length_of(path), 42);
  ASSERT_EQ(path.sums.size(), 2u);
  EXPECT_EQ(program.tags[path.sums[0].tag].name, "kernel");
  EXPECT_EQ(path.sums[0].time, 37);
  EXPECT_EQ(path.sums[0].links, 2);
  EXPECT_EQ(path.sums[1].time, 5);
  EXPECT_EQ(describe(history, path.links[1]), "message (rank 1): 5 ps; late peer, wait");
}

TEST(CriticalPath, EndsAtTheHostWhenOnlyTheLaunchExplains) {
  // Launches at 5 and 10. Kernel [5,8), kernel [10,14) behind it: only the host explains 10. The second one takes 4 instead of 3.
  Script s;
  for (int i = 0; i < 2; ++i) s.builder.launch(s.kernel(0, 3), s.builder.lane(0, LaneKind::kCompute));
  s.builder.launch_cost(5);
  const engine::Program program = s.builder.take();
  const engine::Run run = by_hand(program, {{1, 4}});
  const CriticalPath path = critical_path(History(program, run));
  ASSERT_EQ(path.links.size(), 1u);
  EXPECT_EQ(path.launch, 10);
  EXPECT_EQ(path.links[0].reason, StartReason::kLaunch);
  EXPECT_EQ(path.links[0].stretch, 1);
  EXPECT_EQ(length_of(path), 14);
}

TEST(CriticalPath, GoesOnBehindWhatTheHostRead) {
  // A launch takes 5. Kernel [5,8), whose end the host reads; the next is launched at 13. Both and 5 + 5 of the host are the
  // step.
  Script s;
  const ActivityId first = s.kernel(0, 3);
  s.builder.launch(first, s.builder.lane(0, LaneKind::kCompute));
  s.builder.host_reads(first);
  s.builder.launch(s.kernel(0, 3), s.builder.lane(0, LaneKind::kCompute));
  s.builder.launch_cost(5);
  const engine::Program program = s.builder.take();
  const engine::Run run = engine::run(program).value();
  const CriticalPath path = critical_path(History(program, run));
  ASSERT_EQ(path.links.size(), 2u);
  EXPECT_EQ(path.links[0].launch, 5);
  EXPECT_EQ(path.links[1].launch, 5);
  EXPECT_EQ(path.links[1].reason, StartReason::kLaunch);
  EXPECT_EQ(path.launch, 10);
  EXPECT_EQ(length_of(path), 16);
}

TEST(CriticalPath, RunsThroughSkippedCopies) {
  // Messages of 14 back to back, kernels of 10 behind each: the messages are the path. 3 copies stand for 7 (4 skipped after copy
  // 1): 7 messages and the last kernel, 7 * 14 + 10.
  Script s;
  for (std::int32_t l = 0; l < 3; ++l) s.builder.wait(s.kernel(0, 10), s.ring(1, 0, 14, l));
  s.builder.section({0, 2, 3, 7, 0});
  const engine::Program program = s.builder.take();
  engine::Run run = by_hand(program);
  run.jumps.push_back({0, 1, 4, 14});
  for (std::size_t a = 4; a < 6; ++a) {
    run.start[a] += 56;
    run.end[a] += 56;
  }
  for (std::size_t slot = 6; slot < 9; ++slot) run.posted[slot] += 56;
  run.makespan += 56;
  ASSERT_EQ(run.makespan, 108);
  const CriticalPath path = critical_path(History(program, run));
  ASSERT_EQ(path.links.size(), 8u);
  EXPECT_EQ(length_of(path), 108);
  for (std::int32_t l = 0; l < 7; ++l) EXPECT_EQ(path.links[static_cast<std::size_t>(l)].instance.copy, l);
  EXPECT_EQ(path.links[3].reason, StartReason::kLane);
  EXPECT_EQ(path.links[7].reason, StartReason::kWait);
}

TEST(Loads, EdgesSumMessagesAndCountOverlappingTimeOnce) {
  // Two messages 0 -> 1 on two lanes, [0,10) and [0,4), one more [10,13): 17 bytes, busy 13. One 1 -> 0.
  Script s;
  s.ring(0, 1, 10);
  s.message(0, LaneKind::kCpSecond, 1, LaneKind::kCpSecondReceive, 4, TrafficAxis::kCp);
  s.ring(0, 1, 3);
  s.message(1, LaneKind::kPpSend, 0, LaneKind::kPpReceive, 2, TrafficAxis::kPp);
  const engine::Program program = s.builder.take();
  const engine::Run run = by_hand(program);
  const std::vector<EdgeLoad> loads = edge_loads(History(program, run));
  ASSERT_EQ(loads.size(), 2u);
  EXPECT_EQ(loads[0], (EdgeLoad{TrafficAxis::kCp, 0, 1, 3, 17, 13}));
  EXPECT_EQ(loads[1], (EdgeLoad{TrafficAxis::kPp, 1, 0, 1, 2, 2}));
}

TEST(Loads, LinksAreReadFromTheRun) {
  Script s;
  s.builder.resource({1.0, 3, kNone});
  s.builder.resource({1.0, kNone, 0});  // a GPU's own: no link
  s.builder.resource({1.0, 1, kNone});
  s.builder.resource({1.0, 0, kNone});  // unused
  s.kernel(0, 1);
  const engine::Program program = s.builder.take();
  engine::Run run = by_hand(program);
  run.drawn = {100, 7, 50, 0};
  run.busy = {90, 7, 60, 0};
  const std::vector<LinkUse> uses = link_uses(History(program, run));
  EXPECT_EQ(uses, (std::vector<LinkUse>{{1, 50, 60}, {3, 100, 90}}));
  const std::vector<LinkLoad> loads = link_loads(uses, {{"a", "b"}, {"b", "c"}, {"", ""}, {"c", "d"}});
  EXPECT_EQ(loads[1], (LinkLoad{"c", "d", Bytes(100), Seconds(90e-12)}));
}

}  // namespace
}  // namespace cpfit::timeline
