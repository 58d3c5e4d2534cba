// Which points a measurement has.
#include "calibrate/probe/plan.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>

namespace cpfit::probe {
namespace {

std::map<std::string, int> counts_of(const std::vector<MeasuredPoint>& points) {
  std::map<std::string, int> counts;
  for (const MeasuredPoint& point : points) ++counts[point.probe];
  return counts;
}

PlanRequest two_ranks() {
  PlanRequest request;
  request.host_of_rank = {"a", "a"};
  return request;
}

TEST(ProbePlan, EveryPointIsThereOnce) {
  for (const char* backend : {"host", "cuda", "loopback"}) {
    for (const bool smoke : {false, true}) {
      PlanRequest request = two_ranks();
      request.backend = backend;
      request.smoke = smoke;
      if (request.backend == "loopback") request.host_of_rank = {"a"};
      std::set<std::string> seen;
      for (const MeasuredPoint& point : plan_points(request)) {
        EXPECT_TRUE(seen.insert(point.probe + " " + axes_text(point.axes)).second) << point.probe << axes_text(point.axes);
      }
      for (const ProbeName& probe : measuring_probes()) {
        EXPECT_TRUE(std::ranges::any_of(seen, [&](const std::string& text) { return text.starts_with(probe.name + " "); }))
            << backend << " " << probe.name;
      }
    }
  }
}

TEST(ProbePlan, SeedShufflesInsideProbesAndNothingElse) {
  PlanRequest request = two_ranks();
  const auto first = plan_points(request);
  EXPECT_EQ(first, plan_points(request));
  request.seed = 2;
  auto second = plan_points(request);
  EXPECT_NE(first, second);
  EXPECT_EQ(counts_of(first), counts_of(second));
  EXPECT_TRUE(std::ranges::is_permutation(first, second));
  EXPECT_EQ(first.front().probe, "attention");
  EXPECT_EQ(first.back().probe, "ring_step");
}

TEST(ProbePlan, InterleavedSpreadsEveryProbe) {
  const auto plan = plan_points(two_ranks());
  const auto spread = interleaved(plan);
  EXPECT_TRUE(std::ranges::is_permutation(plan, spread));
  // Any part of the plan from its start has of each probe its share, to within one point.
  const auto counts = counts_of(plan);
  std::map<std::string, int> seen;
  for (std::size_t i = 0; i < spread.size(); ++i) {
    ++seen[spread[i].probe];
    const double part = static_cast<double>(i + 1) / static_cast<double>(spread.size());
    for (const auto& [probe, count] : counts) EXPECT_NEAR(seen[probe], part * count, 2 + 0.02 * count) << probe << " " << i;
  }
}

TEST(ProbePlan, OneRankSkipsWhatNeedsAnother) {
  PlanRequest request;
  for (const MeasuredPoint& point : plan_points(request)) {
    const bool alone = point.probe == "attention" || point.probe == "gemm" || point.probe == "memory" || point.probe == "launch";
    EXPECT_EQ(point.outcome == MeasuredOutcome::kMeasured, alone) << point.probe;
    if (!alone) {
      EXPECT_FALSE(point.reason.empty()) << point.probe;
    }
  }
}

TEST(ProbePlan, OnlyTheProbesAskedFor) {
  PlanRequest request = two_ranks();
  request.probes = {"p2p", "gemm"};
  const auto counts = counts_of(plan_points(request));
  EXPECT_EQ(counts.size(), 2U);
  EXPECT_GT(counts.at("p2p"), 20);
}

TEST(ProbePlan, EveryClassOfLinkHasAPair) {
  PlanRequest request = two_ranks();
  request.host_of_rank = {"a", "a", "b", "b"};
  std::set<std::string> pairs;
  for (const MeasuredPoint& point : plan_points(request)) {
    if (point.probe == "p2p") pairs.insert(point.text("pair") + " " + point.text("link"));
  }
  EXPECT_THAT(pairs, testing::ElementsAre("0-1 shared memory", "0-2 network", "ring network"));
}

TEST(ProbePlan, RingsAreOfTheRanksThereAre) {
  PlanRequest request = two_ranks();
  for (const MeasuredPoint& point : plan_points(request)) {
    if (point.probe == "ring_step") {
      EXPECT_EQ(point.integer("cp"), 2);
    }
  }
  request.backend = "loopback";
  request.host_of_rank = {"a"};
  std::set<std::int64_t> degrees;
  for (const MeasuredPoint& point : plan_points(request)) {
    if (point.probe == "ring_step") degrees.insert(*point.integer("cp"));
  }
  EXPECT_THAT(degrees, testing::ElementsAre(2, 4, 8));
}

TEST(ProbePlan, GroupsCoverAllRanks) {
  EXPECT_EQ(groups_of(8, 4, false), (std::vector<std::vector<std::int32_t>>{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(groups_of(8, 4, true), (std::vector<std::vector<std::int32_t>>{{0, 2, 4, 6}, {1, 3, 5, 7}}));
  EXPECT_EQ(groups_of(2, 2, false), (std::vector<std::vector<std::int32_t>>{{0, 1}}));
}

TEST(ProbePlan, PartnersFindEachOther) {
  for (const std::int32_t size : {4, 5, 8}) {
    for (std::int32_t rings = 1; rings <= size / 2; ++rings) {
      std::int32_t taking_part = 0;
      for (std::int32_t rank = 0; rank < size; ++rank) {
        const std::int32_t partner = partner_of(rank, size, rings);
        if (partner < 0) continue;
        ++taking_part;
        EXPECT_EQ(partner_of(partner, size, rings), rank) << size << " " << rings;
      }
      EXPECT_EQ(taking_part, 2 * rings) << size;
    }
  }
}

TEST(ProbePlan, FlopsOfAttention) {
  MeasuredPoint point;
  point.axes = {
      {"q", std::int64_t{128}}, {"kv", std::int64_t{256}},        {"heads", std::int64_t{4}}, {"head_dim", std::int64_t{64}},
      {"mask", "full"},         {"head_dim_v", std::int64_t{64}}, {"pass", "forward"}};
  EXPECT_EQ(attention_flops(point), 4.0 * 128 * 256 * 4 * 64);
  point.axes.back().value = "backward";
  EXPECT_EQ(attention_flops(point), 2.5 * 4.0 * 128 * 256 * 4 * 64);
}

}  // namespace
}  // namespace cpfit::probe
