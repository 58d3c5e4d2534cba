// A measurement from plan to file, with ranks as threads: the file's structure, going on in it, and what is refused.
#include "calibrate/probe/measure.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "calibrate/probe/measurement_store.h"
#include "calibrate/probe/nccl_channels.h"
#include "calibrate/probe/plan.h"
#include "calibrate/probe/series.h"
#include "calibrate/probe/together.h"
#include "kernels/transport/in_process.h"

namespace cpfit::probe {
namespace {

using testing::HasSubstr;

class MeasureTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              ("measure." + std::to_string(::getpid()) + "." + testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    options_.out = folder_ / "m.json";
    options_.smoke = true;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  MeasureEnd run(
      std::int32_t ranks, const std::vector<std::string>& probes = {},
      const std::function<bool()>& interrupted = [] { return false; }) {
    std::atomic<MeasureEnd> end{MeasureEnd::kDone};
    kernels::run_ranks(ranks, std::chrono::seconds(60), [&](kernels::InProcessTransport& transport) {
      ProgressLines progress(false);
      const MeasureEnd own = measure(options_, probes, transport, progress, interrupted);
      if (transport.rank() == 0) end = own;
    });
    return end;
  }
  [[nodiscard]] MeasurementFile file() const {
    const auto read = read_measurement(options_.out);
    EXPECT_TRUE(read.ok()) << to_text(read.problems().front());
    return read.ok() ? *read : MeasurementFile{};
  }

  std::filesystem::path folder_;
  BenchOptions options_;
};

TEST_F(MeasureTest, SmokeMeasuresEveryPointOfThePlan) {
  ASSERT_EQ(run(2), MeasureEnd::kDone);
  const MeasurementFile first = file();
  EXPECT_EQ(first.backend, "host");
  EXPECT_EQ(first.ranks, 2);
  EXPECT_EQ(first.ranks_per_host, 2);
  EXPECT_TRUE(first.smoke);
  EXPECT_EQ(first.machine.hosts.size(), 1U);
  EXPECT_FALSE(first.machine.cpu.empty());
  EXPECT_GT(first.machine.memory_bytes, 0);
  EXPECT_TRUE(first.machine.clocks_mhz.has_value());
  std::set<std::string> probes;
  for (const MeasuredPoint& point : first.points) {
    probes.insert(point.probe);
    if (point.probe == "shared_nic") {
      EXPECT_EQ(point.outcome, MeasuredOutcome::kSkipped);
      continue;
    }
    EXPECT_EQ(point.outcome, MeasuredOutcome::kMeasured) << point.probe << " " << point.reason;
    ASSERT_FALSE(point.results.empty()) << point.probe;
    for (const MeasuredResult& result : point.results) {
      EXPECT_GE(result.median, 0) << point.probe << " " << result.name;
      EXPECT_LE(result.low, result.median);
      EXPECT_GE(result.high, result.median);
    }
  }
  EXPECT_EQ(probes.size(), measuring_probes().size());
}

// The rank's own core moves messages: of the time that it computes beside one, the part that it spends in MPI's calls.
TEST_F(MeasureTest, OverlapSaysWhatMessagesTakeOfTheCore) {
  ASSERT_EQ(run(2, {"overlap"}), MeasureEnd::kDone);
  std::size_t points = 0;
  for (const MeasuredPoint& point : file().points) {
    ASSERT_EQ(point.outcome, MeasuredOutcome::kMeasured) << point.reason;
    const MeasuredResult* share = point.result("sm_share");
    ASSERT_NE(share, nullptr) << axes_text(point.axes);
    EXPECT_GT(share->median, 0);  // blocks have tiles, and between two of them somebody asks
    EXPECT_LT(share->median, 1);
    ++points;
  }
  EXPECT_GT(points, 0u);
}

TEST(NcclChannels, AreThoseThatItSaysLast) {
  EXPECT_EQ(
      channels_per_peer("h:1:2 [0] NCCL INFO 16 coll channels, 16 collnet channels, 0 nvls channels, 24 p2p channels, 8 p2p "
                        "channels per peer\n"
                        "h:1:2 [0] NCCL INFO 24 coll channels, 24 nvls channels, 32 p2p channels, 32 p2p channels per peer\n"),
      32);
  EXPECT_EQ(channels_per_peer("h:1:2 [0] NCCL INFO Channel 00/02 :    0   1\n"), std::nullopt);
  EXPECT_EQ(channels_per_peer(" p2p channels per peer"), std::nullopt);
}

TEST(NcclChannels, SomebodysOwnLogIsLeftAlone) {
  ASSERT_EQ(::setenv("NCCL_DEBUG", "WARN", 1), 0);
  EXPECT_EQ(NcclLog().channels_per_peer(), std::nullopt);
  EXPECT_STREQ(std::getenv("NCCL_DEBUG"), "WARN");
  ::unsetenv("NCCL_DEBUG");
  ::unsetenv("NCCL_DEBUG_FILE");
  {
    const NcclLog log;
    ASSERT_NE(std::getenv("NCCL_DEBUG_FILE"), nullptr);
    std::ofstream(std::getenv("NCCL_DEBUG_FILE")) << "[0] NCCL INFO 2 coll channels, 2 p2p channels, 2 p2p channels per peer\n";
    EXPECT_EQ(log.channels_per_peer(), 2);
  }
  EXPECT_FALSE(std::filesystem::exists(std::getenv("NCCL_DEBUG_FILE")));
  for (const char* name : {"NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE"}) ::unsetenv(name);
}

TEST_F(MeasureTest, FourRanksHaveGroupsPairsAndRings) {
  ASSERT_EQ(run(4, {"collective", "shared_nic", "p2p", "ring_step"}), MeasureEnd::kDone);
  std::set<std::string> groups;
  std::set<std::int64_t> rings;
  for (const MeasuredPoint& point : file().points) {
    const bool a2a_of_two_heads = point.text("method") == "a2a";
    EXPECT_EQ(point.outcome, MeasuredOutcome::kMeasured) << point.probe << " " << axes_text(point.axes) << " " << point.reason;
    EXPECT_FALSE(a2a_of_two_heads) << "two KV heads do not divide by four ranks";
    if (point.probe == "collective") groups.insert(point.text("stride") + std::to_string(*point.integer("ranks")));
    if (point.probe == "shared_nic") rings.insert(*point.integer("rings"));
  }
  EXPECT_THAT(groups, testing::ElementsAre("consecutive2", "consecutive4", "strided2"));
  EXPECT_THAT(rings, testing::ElementsAre(1, 2));
}

TEST_F(MeasureTest, StructureIsTheSameEveryTime) {
  ASSERT_EQ(run(2), MeasureEnd::kDone);
  const MeasurementFile first = file();
  options_.out = folder_ / "again.json";
  ASSERT_EQ(run(2), MeasureEnd::kDone);
  const MeasurementFile second = file();
  ASSERT_EQ(first.points.size(), second.points.size());
  for (std::size_t i = 0; i < first.points.size(); ++i) {
    EXPECT_EQ(first.points[i].probe, second.points[i].probe);
    EXPECT_EQ(first.points[i].axes, second.points[i].axes);
    ASSERT_EQ(first.points[i].results.size(), second.points[i].results.size());
    for (std::size_t j = 0; j < first.points[i].results.size(); ++j) {
      const MeasuredResult& a = first.points[i].results[j];
      const MeasuredResult& b = second.points[i].results[j];
      EXPECT_EQ(a.name, b.name);
      if (a.name.ends_with("_bytes")) {
        EXPECT_EQ(a.median, b.median) << "bytes are counted";
      }
    }
  }
}

TEST_F(MeasureTest, RingStepsHaveTheirTimeline) {
  ASSERT_EQ(run(2, {"ring_step"}), MeasureEnd::kDone);
  for (const MeasuredPoint& point : file().points) {
    const auto value = [&](const char* name) { return point.result(name) == nullptr ? -1.0 : point.result(name)->median; };
    EXPECT_GE(value("seconds"), value("compute_seconds"));
    EXPECT_GE(value("exposed_seconds"), 0);
    EXPECT_GT(value("buffer_bytes"), 0);
    EXPECT_GE(value("peak_allocated_bytes"), value("buffer_bytes"));
    EXPECT_GE(value("peak_reserved_bytes"), value("peak_allocated_bytes"));
    std::set<std::pair<std::int32_t, std::string>> lanes;
    for (const MeasuredWindow& window : point.windows) {
      lanes.insert({window.rank, window.lane});
      EXPECT_LT(window.start_seconds, window.end_seconds);
    }
    for (const std::int32_t rank : {0, 1}) {
      for (const char* lane : {"compute", "send", "receive"}) EXPECT_TRUE(lanes.contains({rank, lane})) << rank << lane;
    }
  }
}

TEST_F(MeasureTest, GoesOnWhereItEnded) {
  std::atomic<int> asked{0};
  ASSERT_EQ(run(2, {"memory", "p2p"}, [&] { return ++asked > 12; }), MeasureEnd::kInterrupted);
  const MeasurementFile first = file();
  ASSERT_GT(first.points.size(), 0U);
  ASSERT_LT(first.points.size(), 12U);
  ASSERT_EQ(run(2, {"memory", "p2p"}), MeasureEnd::kDone);
  const MeasurementFile second = file();
  ASSERT_EQ(second.points.size(), 12U);  // 2 sizes of messages, one way and both; 4 operators of 2 sizes
  for (std::size_t i = 0; i < first.points.size(); ++i) EXPECT_EQ(first.points[i], second.points[i]) << "not measured again";
  EXPECT_EQ(first.started_at, second.started_at);
}

TEST_F(MeasureTest, AFailedPointIsMeasuredAgain) {
  ASSERT_EQ(run(1, {"launch"}), MeasureEnd::kDone);
  MeasurementFile broken = file();
  broken.points.front().outcome = MeasuredOutcome::kFailed;
  broken.points.front().results.clear();
  write_measurement(broken, options_.out);
  ASSERT_EQ(run(1, {"launch"}), MeasureEnd::kDone);
  ASSERT_EQ(file().points.size(), 1U);
  EXPECT_EQ(file().points.front().outcome, MeasuredOutcome::kMeasured);
}

TEST_F(MeasureTest, AnotherMeasurementsFileIsLeftAlone) {
  ASSERT_EQ(run(1, {"launch"}), MeasureEnd::kDone);
  const MeasurementFile before = file();
  EXPECT_EQ(run(2, {"launch"}), MeasureEnd::kRefused);
  options_.seed = 9;
  EXPECT_EQ(run(1, {"launch"}), MeasureEnd::kRefused);
  EXPECT_EQ(file(), before);
  std::ofstream(options_.out) << "{\"traceEvents\": []}";
  EXPECT_EQ(run(1, {"launch"}), MeasureEnd::kRefused);
  options_.out = folder_ / "absent" / "m.json";
  EXPECT_EQ(run(1, {"launch"}), MeasureEnd::kRefused);
  options_.out = folder_;
  EXPECT_EQ(run(1, {"launch"}), MeasureEnd::kRefused);
}

TEST_F(MeasureTest, ASpentBudgetLeavesPointsForTheNextRun) {
  options_.budget_seconds = 1e-9;
  ASSERT_EQ(run(1, {"memory"}), MeasureEnd::kDone);
  EXPECT_TRUE(file().points.empty());
  options_.budget_seconds = 0;
  ASSERT_EQ(run(1, {"memory"}), MeasureEnd::kDone);
  EXPECT_EQ(file().points.size(), 8U);
}

TEST(MeasurementStore, SaysWhatDiffers) {
  MeasurementFile a;
  a.backend = "host";
  a.machine.hosts = {"n1"};
  MeasurementFile b = a;
  EXPECT_EQ(why_not_continue(a, b), "");
  b.machine.hosts = {"n2"};
  EXPECT_EQ(why_not_continue(a, b), "it holds figures of the machine n1, this run has n2");
  b = a;
  b.backend = "cuda";
  EXPECT_THAT(why_not_continue(a, b), HasSubstr("backend host, this run has cuda"));
  b = a;
  b.machine.driver = "580.1";
  EXPECT_THAT(why_not_continue(a, b), HasSubstr("580.1"));
  b = a;
  b.machine.throttled = "yes";  // of the run, not of the machine
  EXPECT_EQ(why_not_continue(a, b), "");
}

TEST(Series, RanksAreCombinedPerRepetition) {
  // Two ranks, two repetitions, two quantities: [rank][repetition][quantity].
  const std::vector<double> all = {1, 10, 4, 40, 3, 30, 2, 20};
  EXPECT_EQ(combined(all, 2, 2, {Combine::kMean}), (std::vector<std::vector<double>>{{2, 3}, {20, 30}}));
  EXPECT_EQ(combined(all, 2, 2, {Combine::kLargest}), (std::vector<std::vector<double>>{{3, 4}, {30, 40}}));
  EXPECT_EQ(combined(all, 2, 2, {Combine::kOfLast}), (std::vector<std::vector<double>>{{3, 4}, {30, 40}}));
  const std::vector<double> crossed = {1, 50, 3, 30};  // the rank that is ready last has the smaller second quantity
  EXPECT_EQ(combined(crossed, 2, 2, {Combine::kOfLast}), (std::vector<std::vector<double>>{{3}, {30}}));
  const std::vector<double> idle = {2, kNoPart};
  EXPECT_EQ(combined(idle, 2, 1, {Combine::kMean}), (std::vector<std::vector<double>>{{2}}));
}

TEST(Together, TellsEverybody) {
  kernels::run_ranks(3, std::chrono::seconds(30), [](kernels::InProcessTransport& transport) {
    Together together(transport);
    EXPECT_EQ(together.largest(transport.rank() == 1 ? 5 : transport.rank()), 5);
    EXPECT_TRUE(together.any(transport.rank() == 2));
    EXPECT_FALSE(together.any(false));
    EXPECT_THAT(together.texts("rank " + std::to_string(transport.rank())), testing::ElementsAre("rank 0", "rank 1", "rank 2"));
    EXPECT_EQ(together.texts(std::string(300, 'x'))[2].size(), 255U);
    const double own = transport.rank();
    const auto all = together.gather({&own, 1});
    EXPECT_EQ(all.size(), transport.rank() == 0 ? 3U : 0U);
    EXPECT_EQ(together.text(transport.rank() == 0 ? "from the first" : "mine"), "from the first");
  });
}

}  // namespace
}  // namespace cpfit::probe
