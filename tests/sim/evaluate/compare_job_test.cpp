// A real job's figures beside the screen: which FLOPs a log counts, which stage memory belongs to, whose communication is
// compared.
#include "sim/evaluate/compare_job.h"

#include <gtest/gtest.h>

#include "model/transformer/flops.h"

namespace cpfit {
namespace {

JobCase job(const std::string& recipe) {
  Outcome<Scenario> scenario = read_scenario(
      "name = \"s\"\nmodel = {preset = \"llama3-8b\"}\ncluster = {preset = \"dgx-h100\", nodes = 1}\n[training]\nsequence_length "
      "= \"32k\"\nglobal_batch = 8\n",
      "s.toml");
  EXPECT_TRUE(scenario.ok());
  scenario.value().base = *parse_recipe(recipe, scenario->base);
  return {std::move(scenario).value(), 0, {}, {}};
}

MeasuredFigure figure(RunFigure which, double value, std::int32_t stage = -1, std::int64_t rank = -1) {
  return {which, stage, rank, value, value, value, 1, 0, ""};
}

JobComparison compared(const JobCase& what) {
  static const RateSet rates = RateSet::defaults();
  Outcome<JobComparison> comparison = compare_job(what, rates);
  EXPECT_TRUE(comparison.ok()) << to_text(comparison.problems().front());
  return std::move(comparison).value();
}

/// 10 s a step: 8 * 32768 tokens on 8 GPUs. The log's TFLOP/s are made with each way of counting.
TEST(CompareJob, TheLogsOwnFiguresTellWhichFlopsItCounts) {
  JobCase what = job("tp=2,cp=4,pp=1,dp=1");
  const double tokens = 32768.0 / 10;  // per second and GPU
  for (const bool recompute : {false, true}) {
    for (const AttentionCount attention : {AttentionCount::kCausalHalf, AttentionCount::kFull}) {
      const double count = training_flops_per_token(what.scenario.model, Tokens(32768), {attention, true, recompute}).value();
      what.figures = {figure(RunFigure::kStepSeconds, 10), figure(RunFigure::kTflopsPerGpu, 1.01 * tokens * count / 1e12),
                      figure(RunFigure::kMfu, 1.01 * tokens * count / 989e12)};
      const JobComparison comparison = compared(what);
      EXPECT_NE(comparison.flops_convention.find(attention == AttentionCount::kFull ? "all s keys" : "s/2 keys"),
                std::string::npos);
      EXPECT_NE(comparison.flops_convention.find(recompute ? "recomputed layers counted" : "nothing recomputed"),
                std::string::npos);
      // One step time, three figures: each is as far off as the others, but for the 1 % that were put in.
      const double step = comparison.figures[0].predicted;
      EXPECT_NEAR(comparison.figures[1].predicted, what.figures[1].median / 1.01 * 10 / step,
                  1e-6 * comparison.figures[1].predicted);
      EXPECT_NEAR(comparison.figures[2].predicted, what.figures[2].median / 1.01 * 10 / step,
                  1e-6 * comparison.figures[2].predicted);
    }
  }
  what.figures[1].median *= 1.2;  // fits none
  const JobComparison none = compared(what);
  EXPECT_EQ(none.figures[1].standing, Standing::kNotPredicted);
  EXPECT_EQ(none.figures[2].standing, Standing::kNotPredicted);
  EXPECT_NE(none.figures[1].note, "");
  EXPECT_NE(none.figures[0].standing, Standing::kNotPredicted);
}

TEST(CompareJob, MemoryIsComparedWithItsStage) {
  JobCase what = job("tp=2,cp=2,pp=2,dp=1,recompute=full");
  what.figures = {figure(RunFigure::kPeakBytes, 5e10, 0), figure(RunFigure::kPeakBytes, 5e10, 1),
                  figure(RunFigure::kPeakBytes, 5e10)};
  const JobComparison comparison = compared(what);
  EXPECT_NE(comparison.figures[0].predicted, comparison.figures[1].predicted);  // embedding and two chunks in flight; the head
  EXPECT_EQ(comparison.figures[2].standing, Standing::kNotPredicted);
  EXPECT_EQ(std::max(comparison.figures[0].predicted, comparison.figures[1].predicted), comparison.predicted.memory.peak.value());
}

TEST(CompareJob, ExposedTimesAreThoseOfTheRank) {
  JobCase what = job("tp=2,cp=2,pp=2,dp=1");
  what.figures = {figure(RunFigure::kExposedCpSeconds, 1, -1, 3), figure(RunFigure::kExposedCpSeconds, 1, -1, 5),
                  figure(RunFigure::kExposedSeconds, 1)};
  what.exposed = {{-1, {0.1, 0.2, 0.3, 0.4}}, {3, {0.9, 0, 0, 0}}};
  const JobComparison traced = compared(what);
  EXPECT_DOUBLE_EQ(traced.figures[0].predicted, 0.9);
  EXPECT_EQ(traced.figures[0].standing, Standing::kInside);
  EXPECT_DOUBLE_EQ(traced.figures[1].predicted, 0.1);
  EXPECT_DOUBLE_EQ(traced.figures[2].predicted, 1.0);
  what.exposed.clear();
  const JobComparison screened = compared(what);
  const TimeBreakdown& time = screened.predicted.time;
  EXPECT_DOUBLE_EQ(screened.figures[0].predicted, time.exposed_cp.value());
  EXPECT_DOUBLE_EQ(screened.figures[2].predicted,
                   (time.exposed_cp + time.exposed_tp + (time.exposed_pp + time.bubble) + time.exposed_dp).value());
}

TEST(CompareJob, WhatCannotBePredictedIsAProblem) {
  const JobCase what = job("tp=3,cp=1,pp=1,dp=1");
  const Outcome<JobComparison> comparison = compare_job(what, RateSet::defaults());
  ASSERT_FALSE(comparison.ok());
  EXPECT_EQ(comparison.problems()[0].code, "ingest.unpredictable");
}

}  // namespace
}  // namespace cpfit
