// The recurrence of a pipeline's turns, against closed forms and a schedule worked out by hand.
#include "sim/screen/pipeline_time.h"

#include <gtest/gtest.h>

#include <vector>

namespace cpfit {
namespace {

Recipe pipeline(std::int32_t pp, std::int32_t vpp) {
  Recipe recipe;
  recipe.pp = pp;
  recipe.vpp = vpp;
  recipe.schedule = vpp > 1 ? Schedule::kInterleaved : Schedule::kOneFOneB;
  return recipe;
}

TEST(PipelineTime, EqualChunksTakeTheClosedForm) {
  // m micro-batches on each stage and (pp - 1) / vpp of them as bubble: (f + b) vpp (m + (pp - 1) / vpp).
  for (const std::int32_t vpp : {1, 2, 3}) {
    const std::vector<double> forward(static_cast<std::size_t>(4 * vpp), 1.0), backward(static_cast<std::size_t>(4 * vpp), 2.0);
    for (const std::int64_t m : {4, 8, 32, 400}) {
      EXPECT_DOUBLE_EQ(pipeline_time(pipeline(4, vpp), m, forward, backward), 3.0 * (vpp * static_cast<double>(m) + 3.0))
          << vpp << " " << m;
    }
  }
}

TEST(PipelineTime, ZeroBubbleTakesItsClosedForm) {
  // m (F + B + W) on each stage and (pp - 1)(F + B - W) of bubble, a third of 1F1B's where all three are equal.
  Recipe recipe = pipeline(4, 1);
  recipe.schedule = Schedule::kZeroBubble;
  const struct {
    double forward, inputs, weights;
  } costs[] = {{1, 1, 1}, {2, 2.5, 2}, {3, 4, 1}};
  for (const auto& cost : costs) {
    const std::vector<double> f(4, cost.forward), b(4, cost.inputs), w(4, cost.weights);
    for (const std::int64_t m : {4, 8, 17, 400}) {
      const double each = cost.forward + cost.inputs + cost.weights, bubble = 3 * (cost.forward + cost.inputs - cost.weights);
      EXPECT_NEAR(pipeline_time(recipe, m, f, b, w), static_cast<double>(m) * each + bubble, 1e-9) << m << " " << cost.weights;
    }
  }
}

TEST(PipelineTime, UnevenChunksByHand) {
  // pp=2, vpp=1, m=2: stage 0 f=1 b=1, stage 1 f=3 b=3. Stage 0: F0 0-1, F1 1-2 (one warm-up, then its first pair). Stage 1: F0
  // 1-4, B0 4-7, F1 7-10, B1 10-13. Stage 0: B0 7-8, B1 13-14.
  const std::vector<double> uneven{1.0, 3.0};
  EXPECT_DOUBLE_EQ(pipeline_time(pipeline(2, 1), 2, uneven, uneven), 14.0);
}

TEST(PipelineTime, ManyMicroBatchesGoOnAtThePaceOfTheFew) {
  const std::vector<double> forward{1, 2, 1, 4, 1, 2}, backward{2, 4, 2, 8, 2, 4};  // pp=2, vpp=3: one chunk of four costs
  const double few = pipeline_time(pipeline(2, 3), 10, forward, backward);          // followed one by one
  const double more = pipeline_time(pipeline(2, 3), 12, forward, backward);
  const double many = pipeline_time(pipeline(2, 3), 40, forward, backward);
  EXPECT_DOUBLE_EQ(many, few + (more - few) * 15.0);
  EXPECT_GE(many, 40.0 * 24.0);  // stage 1: 2 + 4 + 2 forward and twice that backward per micro-batch
}

TEST(PipelineTime, ChunksLeaveOneCollectiveOrWhatOutgrowsTheirGaps) {
  // Four collectives of 3, a chunk every 5: each is over before the next, the last one shows. Every 2: the first starts at 0, all
  // four end at 12, the last chunk was done at 6. The recurrence end = max(end, k * gap) + each says the same.
  EXPECT_DOUBLE_EQ(chunk_by_chunk(3.0, 5.0, 4), 3.0);
  EXPECT_DOUBLE_EQ(chunk_by_chunk(3.0, 2.0, 4), 6.0);
  for (const double gap : {0.0, 0.5, 3.0, 7.0}) {
    for (const std::int32_t chunks : {1, 2, 8}) {
      double end = 0.0;
      for (std::int32_t k = 0; k < chunks; ++k) end = std::max(end, k * gap) + 3.0;
      EXPECT_DOUBLE_EQ(chunk_by_chunk(3.0, gap, chunks), end - (chunks - 1) * gap) << gap << " " << chunks;
    }
  }
}

}  // namespace
}  // namespace cpfit
