// The rule of the verdict on hand-made candidates.
#include "sim/plan/verdict.h"

#include <gtest/gtest.h>

namespace cpfit {
namespace {

Candidate make(std::int32_t cp, double step, double device_gib, Fit fit = Fit::kFits, double exposed = 0.0) {
  Candidate candidate;
  candidate.recipe.cp = cp;
  candidate.time.compute = Seconds(step - exposed);
  candidate.time.exposed_cp = Seconds(exposed);
  candidate.memory.device = gib(device_gib);
  candidate.verdict.fit = fit;
  candidate.verdict.capacity = gib(80);
  candidate.verdict.upper = gib(device_gib);
  candidate.verdict.margin = gib(80 - device_gib);
  candidate.tokens_per_second_per_gpu = 1000.0 / step;
  return candidate;
}

TEST(Verdict, ShipsTheSmallestCpWithinTheToleranceOfTheFastest) {
  Requirements requirements;
  requirements.throughput_tolerance_share = 0.05;
  // cp 4 is fastest (10.0 s); cp 2 at 10.4 s is 3.8 % slower in throughput: it ships. cp 1 at 12 s is 16.7 % slower: it does not.
  const std::vector<Candidate> candidates{make(1, 12.0, 70), make(2, 10.4, 60), make(4, 10.0, 50)};
  EXPECT_EQ(choose_ship(candidates, requirements), 1U);
  requirements.throughput_tolerance_share = 0.0;
  EXPECT_EQ(choose_ship(candidates, requirements), 2U);
  requirements.throughput_tolerance_share = 0.2;
  EXPECT_EQ(choose_ship(candidates, requirements), 0U);
}

TEST(Verdict, OutOfMemoryAndExposedRecipesDoNotShip) {
  const Requirements requirements;  // exposed budget 5 %
  const std::vector<Candidate> candidates{make(1, 5.0, 95, Fit::kOom), make(2, 6.0, 78, Fit::kAtRisk),
                                          make(4, 7.0, 60, Fit::kFits, 0.7 /* 10 % of the step */),
                                          make(8, 8.0, 50, Fit::kFits, 0.2)};
  EXPECT_EQ(choose_ship(candidates, requirements), 3U);
  EXPECT_EQ(judge_candidate(candidates[0], requirements).rule, "memory");
  EXPECT_EQ(judge_candidate(candidates[1], requirements).rule, "memory");
  EXPECT_EQ(judge_candidate(candidates[2], requirements).rule, "exposed_cp");
  EXPECT_DOUBLE_EQ(judge_candidate(candidates[2], requirements).amount, 0.1);
  EXPECT_TRUE(judge_candidate(candidates[3], requirements).feasible());
}

TEST(Verdict, MissingBytesIncludeTheRequiredMargin) {
  Requirements requirements;
  requirements.memory_margin_share = 0.05;
  // Upper bound 86 GiB of 80, and 5 % = 4 GiB must stay free: 10 GiB are missing.
  EXPECT_NEAR(judge_candidate(make(2, 1, 86, Fit::kOom), requirements).amount / kGiB, 10.0, 1e-9);
}

TEST(Verdict, TheControlIsTheCpOneRecipeMostFavourableToCpOne) {
  const Requirements requirements;
  std::vector<Candidate> candidates{make(1, 12, 95, Fit::kOom), make(1, 13, 84, Fit::kOom), make(2, 10, 60)};
  EXPECT_EQ(choose_control(candidates, requirements, {}, Precision::kBf16), 1U) << "none fits: least memory";
  candidates[0] = make(1, 12, 70);
  EXPECT_EQ(choose_control(candidates, requirements, {}, Precision::kBf16), 0U) << "one fits: it is the control";
  candidates[0].recipe.recompute.kind = RecomputeKind::kFull;
  EXPECT_EQ(choose_control(candidates, requirements, {}, Precision::kBf16), 1U) << "another recompute policy is no control";
}

TEST(Verdict, FrontHoldsOnlyRecipesThatNothingBeats) {
  // (step, GiB): (10, 50) and (12, 40) are the front; (11, 60) loses to the first, (13, 45) to the second.
  const std::vector<Candidate> candidates{make(1, 11, 60), make(2, 10, 50), make(4, 13, 45), make(8, 12, 40)};
  EXPECT_EQ(pareto_front(candidates), (std::vector<std::size_t>{1, 3}));
}

}  // namespace
}  // namespace cpfit
