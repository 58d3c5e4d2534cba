// A ring step put together from the rates of its parts, against sums derived by hand.
#include "sim/evaluate/ring_validation.h"

#include <gtest/gtest.h>

#include <cmath>

namespace cpfit {
namespace {

TEST(RunBeside, AKernelAndAMessageShareTheirTime) {
  // Nothing slows anything: both run as long as alone.
  Beside end = run_beside(0, 3, 0, 2, 1, 1);
  EXPECT_DOUBLE_EQ(end.kernel_end, 3);
  EXPECT_DOUBLE_EQ(end.message_end, 2);
  // A message of 1 at half speed passes in 2; the kernel does 1 of its 3 meanwhile and ends at 2 + 2.
  end = run_beside(0, 3, 0, 1, 2, 2);
  EXPECT_DOUBLE_EQ(end.message_end, 2);
  EXPECT_DOUBLE_EQ(end.kernel_end, 4);
  // A kernel of 1 at half speed ends at 2; of the message of 4, which would need 8, a quarter has passed: 3 remain, alone.
  end = run_beside(0, 1, 0, 4, 2, 2);
  EXPECT_DOUBLE_EQ(end.kernel_end, 2);
  EXPECT_DOUBLE_EQ(end.message_end, 5);
  // It begins when the kernel is through.
  end = run_beside(0, 1, 2, 1, 2, 2);
  EXPECT_DOUBLE_EQ(end.kernel_end, 1);
  EXPECT_DOUBLE_EQ(end.message_end, 3);
  // It begins in the middle: 1 alone, then a message of 1 at half speed takes 2 and 1 of work; 1 of 3 is left.
  end = run_beside(0, 3, 1, 1, 2, 2);
  EXPECT_DOUBLE_EQ(end.message_end, 3);
  EXPECT_DOUBLE_EQ(end.kernel_end, 4);
}

/// A processor of 1 GFLOP/s whose kernels start at once, with a link of 1 GB/s and memory that costs nothing to speak of.
RateTables tables(double link_rate, double slowdown) {
  RateTables tables;
  tables.version = "t";
  FittedDevice device;
  device.gpu = "host T";
  device.generation = "host";
  device.scale_up_link = "wire";
  device.peaks.sm_count = 1;
  device.peaks.hbm = 1e18;
  device.peaks.math = {1e9, 0, 0, 0, 0, 1e9};
  tables.devices = {device};
  for (const AttentionPass pass : {AttentionPass::kForward, AttentionPass::kBackward}) {
    AttentionCurve curve;
    curve.launch = curve.half = curve.wave_rounding = curve.diagonal = curve.sustained_loss = 0;
    curve.peak_share = curve.share_64 = 1;
    curve.q_len = curve.kv_len = curve.heads = {1, 1e6};
    tables.attention.push_back({"host T", AttentionLibrary::kOwn, MathKind::kFp32, pass, curve});
  }
  MemoryCurve copy;
  copy.launch = 0;
  copy.hbm_share = 1;
  tables.memory.push_back({"host T", "copy", AttentionPass::kForward, copy});
  CollectiveRow message;
  message.link = "wire";
  message.kind = CollectiveKind::kSendRecv;
  message.raw = link_rate;
  message.curve.ranks = 2;
  message.curve.piece_count = 1;
  message.curve.pieces[0] = {1, 1e12, 0, 1};
  tables.collective.push_back(message);
  OverlapRow overlap;
  overlap.link = "wire";
  overlap.slowdown = slowdown;
  overlap.message_slowdown = 1;
  tables.overlap.push_back(overlap);
  return tables;
}

MeasuredPoint step(const char* method, const char* mask, const char* layout, const char* pass, std::int64_t cp,
                   std::int64_t length) {
  const auto text = [](const char* value) { return AxisValue(std::string(value)); };
  return {"ring_step",
          {{"method", text(method)},
           {"mask", text(mask)},
           {"layout", text(layout)},
           {"cp", cp},
           {"length", length},
           {"heads", std::int64_t{2}},
           {"kv_heads", std::int64_t{1}},
           {"head_dim", std::int64_t{64}},
           {"dtype", text("fp32")},
           {"pass", text(pass)}},
          MeasuredOutcome::kMeasured,
          "",
          0,
          {},
          {}};
}

RingStepPrediction predict(const RateTables& rates, const MeasuredPoint& point) {
  return predict_ring_step(ring_rates(rates, "host T", "wire").value(), point).value();
}

// cp 2, 256 tokens, full mask: each rank has 128 queries and meets 128 keys twice. One block: 4 * 64 * 2 * 128 * 128 FLOPs.
constexpr double kBlock = 4.0 * 64 * 2 * 128 * 128 / 1e9;
// K and V of a shard: 2 * 128 tokens * 1 head * 64 * 4 bytes.
constexpr double kKv = 2.0 * 128 * 64 * 4;

TEST(RingStep, AFastLinkHides) {
  const RingStepPrediction fast = predict(tables(1e12, 1), step("te_p2p", "full", "zigzag", "forward", 2, 256));
  EXPECT_NEAR(fast.seconds, 2 * kBlock, 1e-3 * kBlock);
  EXPECT_NEAR(fast.compute_seconds, 2 * kBlock, 1e-6 * kBlock);
  EXPECT_NEAR(fast.exposed_seconds, 0, 1e-6 * kBlock);
}

TEST(RingStep, ASlowLinkExposesWhatExceedsAStep) {
  const double rate = kKv / (3 * kBlock);  // the message takes three blocks
  for (const char* method : {"te_p2p", "fp32_ring"}) {
    const RingStepPrediction slow = predict(tables(rate, 1), step(method, "full", "zigzag", "forward", 2, 256));
    EXPECT_NEAR(slow.exposed_seconds, 2 * kBlock, 1e-3 * kBlock) << method;
    EXPECT_NEAR(slow.seconds, 4 * kBlock, 1e-3 * kBlock) << method;
  }
}

TEST(RingStep, KernelsLoseWhatMessagesTake) {
  const double rate = kKv / (0.5 * kBlock);  // half a block's time, during which the kernel runs at half speed: a quarter lost
  const RingStepPrediction prediction = predict(tables(rate, 2), step("te_p2p", "full", "zigzag", "forward", 2, 256));
  EXPECT_NEAR(prediction.seconds, 2.25 * kBlock, 1e-3 * kBlock);
  EXPECT_NEAR(prediction.compute_seconds, 2.25 * kBlock, 1e-3 * kBlock);
}

TEST(RingStep, BackwardRingsSendWhatTheirOrderSays) {
  const double rate = kKv / (10 * kBlock);  // a KV takes ten forward blocks, four backward ones
  const double block = 2.5 * kBlock, kv = 10 * kBlock;
  // TransformerEngine: KV beside the first block, dKV beside the second: two hops, each exposed but for a block.
  const RingStepPrediction te = predict(tables(rate, 1), step("te_p2p", "full", "zigzag", "backward", 2, 256));
  EXPECT_NEAR(te.seconds, 2 * kv, 0.01 * kBlock);
  EXPECT_NEAR(te.exposed_seconds, 2 * (kv - block), 0.01 * kBlock);
  // The fp32-dKV codes: the same, and one hop that brings dKV home behind everything.
  const RingStepPrediction fp32 = predict(tables(rate, 1), step("fp32_ring", "full", "zigzag", "backward", 2, 256));
  EXPECT_NEAR(fp32.seconds, 3 * kv, 0.01 * kBlock);
}

TEST(RingStep, ContiguousCausalWaitsForTheLastRank) {
  // Rank 0 attends its own diagonal only, rank 1 a full block and its diagonal: 1 + 0.5 * 129/128 of a block.
  const RingStepPrediction prediction = predict(tables(1e12, 1), step("fp32_ring", "causal", "contiguous", "forward", 2, 256));
  EXPECT_NEAR(prediction.seconds, (1 + 0.5 * 129 / 128) * kBlock, 1e-3 * kBlock);
}

TEST(RingStep, WhatIsMissingOrNotPredictedIsNamed) {
  RateTables rates = tables(1e9, 1);
  EXPECT_EQ(ring_rates(rates, "host T", "tcp").problems().at(0).message, "no rate of messages over tcp");
  const RingRates known = ring_rates(rates, "host T", "wire").value();
  EXPECT_EQ(predict_ring_step(known, step("a2a", "full", "zigzag", "forward", 2, 256)).problems().at(0).code, "ring.method");
  rates.attention.pop_back();
  EXPECT_EQ(ring_rates(rates, "host T", "wire").problems().at(0).message, "no rate of attention backward");
}

TEST(RingStep, ItsShapesAreWhatAFitMustNotHaveSeen) {
  // Zigzag, causal, cp 2, 256 tokens: both diagonals 128x128; rank 1 meets half of rank 0's keys, rank 0 half its queries rank
  // 1's.
  const RingWork work = ring_work(step("te_p2p", "causal", "zigzag", "forward", 2, 256));
  ASSERT_EQ(work.kernels.size(), 4u);
  int squares = 0, wide = 0, high = 0;
  for (const AttentionShape& shape : work.kernels) {
    squares += shape.q_len == 128 && shape.kv_len == 128 && shape.causal;
    high += shape.q_len == 128 && shape.kv_len == 64 && !shape.causal;
    wide += shape.q_len == 64 && shape.kv_len == 128 && !shape.causal;
  }
  EXPECT_EQ(squares, 2);
  EXPECT_EQ(high, 1);
  EXPECT_EQ(wide, 1);
  EXPECT_EQ(work.message_bytes, (std::vector<double>{kKv, 2 * kKv}));
}

// The slow link above: of four blocks' time two are exposed. Measured were five, two and a half of them exposed.
TEST(RingValidation, ComparesTheStepAndWhatItExposes) {
  const double rate = kKv / (3 * kBlock);
  MeasuredPoint point = step("te_p2p", "full", "zigzag", "forward", 2, 256);
  for (const auto& [name, blocks] : {std::pair("seconds", 5.0), std::pair("exposed_seconds", 2.5)})
    point.results.push_back({name, blocks * kBlock, blocks * kBlock, blocks * kBlock, 0, 10, 0});
  MeasurementFile file;
  file.points = {point, step("a2a", "full", "zigzag", "forward", 2, 256)};  // the second has no time: not a measured step
  const ValidationResult result = evaluate_ring_steps(file, "t.json", ring_rates(tables(rate, 1), "host T", "wire"));
  ASSERT_EQ(result.rows.size(), 2u);
  EXPECT_EQ(result.rows[0].metric, Metric::kStepSeconds);
  EXPECT_NEAR(result.rows[0].error, 4.0 / 5 - 1, 1e-3);
  const ValidationRow& exposed = result.rows[1];
  EXPECT_EQ(exposed.metric, Metric::kExposedSeconds);
  EXPECT_EQ(name_of(exposed.metric), "exposed_seconds");
  EXPECT_DOUBLE_EQ(exposed.measured, 2.5 * kBlock);
  EXPECT_NEAR(exposed.predicted, 2 * kBlock, 1e-3 * kBlock);
  EXPECT_NEAR(exposed.error, (2 - 2.5) / 5, 1e-3);  // of the step
  // As wide as the step's interval, in seconds.
  EXPECT_NEAR(exposed.high - exposed.predicted, result.rows[0].high - result.rows[0].predicted, 1e-9 * kBlock);
  ASSERT_EQ(result.summary.size(), 2u);
  EXPECT_NEAR(result.summary[1].bias, exposed.error, 1e-12);
}

TEST(RingValidation, StepsWithoutRatesAreSkippedWithTheReason) {
  MeasuredPoint point = step("te_p2p", "full", "zigzag", "forward", 2, 256);
  point.results.push_back({"seconds", 1, 1, 1, 0, 10, 0});
  MeasurementFile file;
  file.points = {point};
  const ValidationResult result = evaluate_ring_steps(file, "t.json", ring_rates(tables(1e9, 1), "host T", "another wire"));
  EXPECT_TRUE(result.rows.empty());
  ASSERT_EQ(result.skipped.size(), 1u);
  EXPECT_NE(result.skipped[0].reason.find("messages over another wire"), std::string::npos) << result.skipped[0].reason;
}

}  // namespace
}  // namespace cpfit
