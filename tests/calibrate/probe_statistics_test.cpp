// When a series has enough samples and what it says: by arithmetic done here, with clocks that are made up.
#include "calibrate/probe/statistics.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "calibrate/probe/nvml.h"

namespace cpfit::probe {
namespace {

using testing::DoubleEq;
using testing::HasSubstr;

std::vector<double> counted(int n, double first = 1) {
  std::vector<double> values;
  for (int i = 0; i < n; ++i) values.push_back(first + i);
  return values;
}

TEST(ProbeStatistics, IntervalEndsAreOrderStatistics) {
  // n = 6: P(Bin(6, 1/2) = 0) = 1/64 = 1.6 % on each side, with 1 more 7/64: the extremes. n = 5: 1/32 = 3.1 % is too much, the
  // extremes are all that can be said.
  EXPECT_EQ(order_interval(6).low, 0);
  EXPECT_EQ(order_interval(6).high, 5);
  EXPECT_EQ(order_interval(5).low, 0);
  EXPECT_EQ(order_interval(5).high, 4);
  // n = 9: (1 + 9) / 512 = 1.95 % below the second smallest, (1 + 9 + 36) / 512 = 9 % below the third.
  EXPECT_EQ(order_interval(9).low, 1);
  EXPECT_EQ(order_interval(9).high, 7);
  // n = 20: sum_{k<=5} C(20,k) / 2^20 = 21700 / 1048576 = 2.07 %, with k = 6 5.8 %: the sixth smallest and largest.
  EXPECT_EQ(order_interval(20).low, 5);
  EXPECT_EQ(order_interval(20).high, 14);
  EXPECT_EQ(order_interval(1).high, 0);
  // 2^-2000 is no double: n = 2000 has mean 1000 and deviation sqrt(500) = 22.4; 1.96 of them are 43.8.
  EXPECT_NEAR(static_cast<double>(order_interval(2000).low), 1000 - 43.8, 2);
}

TEST(ProbeStatistics, IntervalHoldsTheMedianAsOftenAsItSays) {
  std::mt19937_64 generator(7);
  std::lognormal_distribution<double> noise(0, 1);  // its median is 1
  int held = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<double> samples(25);
    for (double& sample : samples) sample = noise(generator);
    std::ranges::sort(samples);
    const OrderInterval at = order_interval(25);
    held += samples[static_cast<std::size_t>(at.low)] <= 1 && 1 <= samples[static_cast<std::size_t>(at.high)] ? 1 : 0;
  }
  // 95.7 % for n = 25; 2000 trials have a deviation of 0.45 %.
  EXPECT_GT(held, 2000 * 0.94);
  EXPECT_LT(held, 2000 * 0.975);
}

TEST(ProbeStatistics, SummaryLeavesOutliersAside) {
  std::vector<double> samples = {10, 11, 9, 10, 12, 8, 10, 11, 9, 100};
  // Median 10; distances 0 1 1 0 2 2 0 1 1 90: their median is 1, five times 1.4826 is 7.4: 100 is out, nothing else.
  const MeasuredResult result = summary_of("seconds", samples);
  EXPECT_EQ(result.outliers, 1);
  EXPECT_EQ(result.samples, 9);
  EXPECT_EQ(result.median, 10);
  EXPECT_THAT(result.spread, DoubleEq(1.4826));
  EXPECT_EQ(result.low, 9);    // second smallest of 8 9 9 10 10 10 11 11 12
  EXPECT_EQ(result.high, 11);  // second largest
}

TEST(ProbeStatistics, AClocksStepsAreNoOutliers) {
  std::vector<double> samples(20, 1.0);
  samples[3] = 1.004;  // 0.4 %, where all others are equal: below five thousandths
  EXPECT_EQ(summary_of("seconds", samples).outliers, 0);
  samples[3] = 1.006;
  EXPECT_EQ(summary_of("seconds", samples).outliers, 1);
  EXPECT_EQ(summary_of("seconds", std::vector<double>{1, 1, 1, 50}).outliers, 0) << "four cannot tell";
}

TEST(ProbeStatistics, ASeriesEndsWhenItsIntervalIsNarrow) {
  const StoppingRule rule{
      .warm_ups = 0, .least_samples = 10, .most_samples = 100, .settled = 0.01, .least_seconds = 0.5, .most_seconds = 2};
  const std::vector<double> quiet(20, 3.0);
  EXPECT_EQ(state_of(rule, quiet, 1.0), SeriesState::kSettled);
  EXPECT_EQ(state_of(rule, quiet, 0.4), SeriesState::kGoOn) << "too early to have seen the machine change";
  EXPECT_EQ(state_of(rule, std::vector<double>(9, 3.0), 1.0), SeriesState::kGoOn) << "too few";
  // 1 .. 20: median 10.5, interval [6, 15]: half of it is 43 % of the median.
  EXPECT_EQ(state_of(rule, counted(20), 1.0), SeriesState::kGoOn);
  EXPECT_EQ(state_of(rule, counted(20), 2.0), SeriesState::kOutOfTime);
  EXPECT_EQ(state_of(rule, counted(2), 5.0), SeriesState::kGoOn) << "three samples at least";
  EXPECT_EQ(state_of(rule, counted(3), 5.0), SeriesState::kOutOfTime);
  EXPECT_EQ(state_of(rule, counted(100), 1.0), SeriesState::kOutOfSamples);
  EXPECT_THAT(caution_of(SeriesState::kOutOfTime, rule, counted(3), 5.0), HasSubstr("interval still"));
  EXPECT_EQ(caution_of(SeriesState::kSettled, rule, quiet, 1.0), "");
}

TEST(ProbeStatistics, DriftIsNamedAndNoiseIsNot) {
  std::vector<double> rising;
  for (int i = 0; i < 60; ++i) rising.push_back(1 + 0.2 * i / 60.0);
  // Thirds of 20: medians at i = 9.5 and 49.5, 40 apart: 0.2 * 40 / 60 = 0.133 over the median of all, 1 + 0.2 * 29.5 / 60.
  EXPECT_NEAR(drift_of(rising), 0.1333 / 1.0983, 0.001);
  EXPECT_THAT(caution_of(SeriesState::kSettled, {}, rising, 1), HasSubstr("rose by 12 %"));
  std::ranges::reverse(rising);
  EXPECT_LT(drift_of(rising), 0);
  std::mt19937_64 generator(3);
  std::normal_distribution<double> noise(1, 0.1);
  int false_alarms = 0;
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<double> samples(60);
    for (double& sample : samples) sample = noise(generator);
    false_alarms += drift_of(samples) != 0 ? 1 : 0;
  }
  EXPECT_LE(false_alarms, 4);
  EXPECT_EQ(drift_of(counted(6)), 0) << "six samples are no drift";
}

TEST(ProbeStatistics, ThrottlingIsBelowThreeQuartersOfTheClock) {
  EXPECT_EQ(throttle_text(std::vector<double>{1500, 2000}, 2000), "");
  EXPECT_EQ(throttle_text(std::vector<double>{1490, 2000}, 2000), "clock at 1490 MHz, 74 % of 2000 MHz");
  EXPECT_EQ(throttle_text({}, 2000), "");
}

TEST(ProbeStatistics, ADriversReasonsAreWords) {
  EXPECT_EQ(throttle_words(0), "");
  EXPECT_EQ(throttle_words(1), "") << "an idle GPU is not slowed down";
  EXPECT_EQ(throttle_words(0x4 | 0x40), "power cap in software, heat, in hardware");
}

TEST(ProbeStatistics, TimeLeftGoesByTheProbesOwnPoints) {
  TimeLeft time;
  const std::vector<TimeLeft::Share> left = {{"gemm", 10}, {"p2p", 5}};
  EXPECT_LT(time.seconds(left), 0);
  time.took("gemm", 1);
  time.took("gemm", 3);
  EXPECT_THAT(time.seconds(left), DoubleEq(10 * 2 + 5 * 2));  // p2p is unknown yet: as all others
  time.took("p2p", 8);
  EXPECT_THAT(time.seconds(left), DoubleEq(10 * 2 + 5 * 8));
}

TEST(ProbeStatistics, ABudgetIsSharedAlike) {
  const StoppingRule rule;  // at most 2 s a point
  EXPECT_EQ(within_budget(rule, 1000, 10).most_seconds, rule.most_seconds);
  EXPECT_THAT(within_budget(rule, 10, 100).most_seconds, DoubleEq(0.1));
  EXPECT_EQ(within_budget(rule, -1, 10).most_seconds, 0);
}

}  // namespace
}  // namespace cpfit::probe
