// Live memory over time, worked out by hand.
#include <gtest/gtest.h>

#include "sim/timeline/counter_track.h"
#include "timeline_fixture.h"

namespace cpfit::timeline {
namespace {

TEST(MemoryTracks, PeakAndWhatIsAliveAtIt) {
  // Kernels a [0,10), b [10,30), c [30,35) on rank 0, 1000 bytes resident. a allocates x (100) when it starts; b allocates y (50)
  // when it starts and frees x at its end; c allocates z (20) when it starts and frees y and z at its end.
  //   0: 1100   10: 1150 (peak)   30: -100, then +20: 1070   35: 1000
  Script s;
  const engine::ActivityId a = s.kernel(0, 10);
  const engine::ActivityId b = s.kernel(0, 20);
  const engine::ActivityId c = s.kernel(0, 5);
  s.kernel(1, 1);
  const engine::Program program = s.builder.take();
  const engine::Run run = by_hand(program);
  MemoryProgram memory;
  memory.components = {"activations", "workspace"};
  memory.names = {"x", "y", "z"};
  memory.resident = {1000, 500};
  memory.events = {{0, a, Moment::kStart, 0, 0, 100}, {0, b, Moment::kStart, 1, 1, 50}, {0, b, Moment::kEnd, 0, 0, -100},
                   {0, c, Moment::kStart, 1, 2, 20},  {0, c, Moment::kEnd, 1, 1, -50},  {0, c, Moment::kEnd, 1, 2, -20}};
  const std::vector<MemoryTrack> tracks = memory_tracks(History(program, run), memory);
  ASSERT_EQ(tracks.size(), 2u);
  EXPECT_EQ(tracks[0].points, (std::vector<MemoryPoint>{{0, 1100, 1100}, {10, 1150, 1150}, {30, 1070, 1070}, {35, 1000, 1000}}));
  EXPECT_EQ(tracks[0].peak, 1150);
  EXPECT_EQ(tracks[0].peak_time, 10);
  EXPECT_EQ(tracks[0].components_at_peak, (std::vector<std::int64_t>{100, 50}));
  EXPECT_EQ(tracks[0].alive_at_peak, (std::vector<LiveTensor>{{0, 0, -1, -1, 100}, {1, 1, -1, -1, 50}}));
  EXPECT_EQ(tracks[1].peak, 500);
  EXPECT_TRUE(tracks[1].alive_at_peak.empty());
}

TEST(MemoryTracks, EveryCopyOfAFoldedBlockAllocates) {
  // Forward: 5 layers of 10 ps, 2 held (3 skipped after copy 0); each keeps 8 bytes at its end. Backward: the same, layers
  // descending, each frees its layer's at its end. Peak: 40 at 50, all five layers; at the end nothing.
  Script s;
  MemoryProgram memory;
  memory.components = {"activations"};
  memory.names = {"input"};
  for (std::int32_t l = 0; l < 2; ++l) {
    memory.events.push_back({0, s.kernel(0, 10, Work::kGemm, LaneKind::kCompute, l), Moment::kEnd, 0, 0, 8});
  }
  for (std::int32_t l = 0; l < 2; ++l) {
    memory.events.push_back({0, s.kernel(0, 10, Work::kGemm, LaneKind::kCompute, 4 - l), Moment::kEnd, 0, 0, -8});
  }
  s.builder.section({0, 1, 2, 5, 0});
  s.builder.section({2, 1, 2, 5, 0});
  const engine::Program program = s.builder.take();
  engine::Run run = by_hand(program);
  run.jumps = {{0, 0, 3, 10}, {1, 0, 3, 10}};
  run.start = {0, 40, 50, 90};  // forward layers 0 and 4, backward layers 4 and 0
  run.end = {10, 50, 60, 100};
  run.posted = {0, 40, 50, 90};
  run.makespan = 100;
  const std::vector<MemoryTrack> tracks = memory_tracks(History(program, run), memory);
  ASSERT_EQ(tracks.size(), 1u);
  EXPECT_EQ(tracks[0].peak, 40);
  EXPECT_EQ(tracks[0].peak_time, 50);
  ASSERT_EQ(tracks[0].alive_at_peak.size(), 5u);
  for (std::int32_t l = 0; l < 5; ++l) EXPECT_EQ(tracks[0].alive_at_peak[static_cast<std::size_t>(l)].layer, l);
  EXPECT_EQ(tracks[0].points.size(), 11u);
  EXPECT_EQ(tracks[0].points.back(), (MemoryPoint{100, 0, 0}));
}

TEST(MemoryTracks, ATensorOfAnotherActivitysLayer) {
  // The ring buffer of layer 0 is freed by layer 1's kernel: `owner` says whose it is.
  Script s;
  const engine::ActivityId a = s.kernel(0, 10, Work::kGemm, LaneKind::kCompute, 0);
  const engine::ActivityId b = s.kernel(0, 10, Work::kGemm, LaneKind::kCompute, 1);
  const engine::Program program = s.builder.take();
  const engine::Run run = by_hand(program);
  MemoryProgram memory;
  memory.components = {"ring"};
  memory.names = {"kv"};
  memory.events = {{0, a, Moment::kStart, 0, 0, 8}, {0, b, Moment::kEnd, 0, 0, -8, a}};
  EXPECT_EQ(memory_tracks(History(program, run), memory)[0].points.back().bytes, 0);
}

TEST(MemoryTracksDeath, FreeingWhatIsNotThereIsOurMistake) {
  Script s;
  const engine::ActivityId a = s.kernel(0, 10);
  const engine::Program program = s.builder.take();
  const engine::Run run = by_hand(program);
  MemoryProgram memory;
  memory.components = {"ring"};
  memory.names = {"kv"};
  memory.events = {{0, a, Moment::kEnd, 0, 0, -8}};
  EXPECT_DEATH((void)memory_tracks(History(program, run), memory), "tensor kv.*-8 bytes");
}

TEST(CounterTracks, LinkRatesAreThoseOfTheTransfersThatRun) {
  // Link 2: a message of 10 bytes [0,10) and one of 5 bytes with a start-up of 5 ps [0,10), so 1 byte/ps = 1000 GB/s during
  // [0,5), 2000 during [5,10), then nothing.
  Script s;
  const engine::PatternId pattern = s.builder.pattern({{s.builder.resource({2.0, 2, kNone}), 1.0}});
  s.message(0, LaneKind::kCpSend, 1, LaneKind::kCpReceive, 10, TrafficAxis::kCp, -1, pattern);
  engine::Spec late;
  late.tag = s.builder.tag({"message", Work::kMessage, TrafficAxis::kTp, engine::StepPass::kForward});
  late.fixed = 5;
  late.amount = 5;
  late.pattern = pattern;
  s.builder.add(late, {s.builder.lane(0, LaneKind::kTp), s.builder.lane(1, LaneKind::kTp)});
  const engine::Program program = s.builder.take();
  const engine::Run run = by_hand(program);
  const std::vector<CounterTrack> tracks = link_rates(History(program, run), {"a to b", "b to c"});
  ASSERT_EQ(tracks.size(), 1u);
  EXPECT_EQ(tracks[0].name, "link 2");
  EXPECT_EQ(tracks[0].points, (std::vector<CounterPoint>{{0, 1000}, {5, 2000}, {10, 0}}));
}

}  // namespace
}  // namespace cpfit::timeline
