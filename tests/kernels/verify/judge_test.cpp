// Errors, limits and what else makes a case fail.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/verify/suite_run.h"

namespace cpfit::kernels {
namespace {

using testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(VerifyErrors, AreNormwiseAndLargestOverTheRow) {
  // Rows (3, 4) and (0, 1): norms 5 and 1, |truth|^2 = 26. Errors 0.3 in the first row, 0.1 in the second.
  const std::vector<double> truth = {3, 4, 0, 1}, x = {3.3, 4, 0.1, 1};
  const ErrorFigures figures = errors_of(x, truth, 2, {1, 1});
  EXPECT_NEAR(figures.normwise, std::sqrt((0.09 + 0.01) / 26.0), 1e-12);
  // Over the row's norm, or the root mean square row's sqrt(26 / 2) = 3.606 where that is larger: 0.3 / 5 and 0.1 / 3.606.
  EXPECT_NEAR(figures.largest, std::max(0.3 / 5.0, 0.1 / std::sqrt(13.0)), 1e-12);
  // Only the second row: its norm is the mean one.
  EXPECT_NEAR(errors_of(x, truth, 2, {0, 1}).largest, 0.1, 1e-12);
  EXPECT_EQ(errors_of(truth, truth, 2, {1, 1}).normwise, 0.0);
}

TEST(VerifyErrors, WhatIsNoNumberIsInfinite) {
  EXPECT_EQ(errors_of({1, kNan}, {1, 1}, 1, {1, 1}).normwise, kInfinity);
  EXPECT_EQ(errors_of({1, kInfinity}, {1, 1}, 1, {1, 1}).largest, kInfinity);
  EXPECT_EQ(errors_of({1, kNan}, {1, 1}, 1, {1, 0}).normwise, 0.0) << "a row that is not judged";
  EXPECT_EQ(errors_of({1e-30}, {0}, 1, {1}).normwise, kInfinity) << "anything beside a truth of 0";
  EXPECT_EQ(errors_of({0}, {0}, 1, {1}).normwise, 0.0);
}

TEST(VerifyLimits, FollowTheStatedRule) {
  const Accumulation wide{true, true, true};
  const ErrorFigures kernel{0.002, 0.004};
  EXPECT_EQ(limits_of(Number::kFp64, wide, 8, TensorName::kDq, kernel).normwise, 1e-12);
  EXPECT_EQ(limits_of(Number::kFp32, wide, 8, TensorName::kDq, kernel).largest, 1e-5);
  // bf16: 2.5 * 0.002 + 2^-8 / 16.
  EXPECT_DOUBLE_EQ(limits_of(Number::kBf16, wide, 8, TensorName::kDq, kernel).normwise, 0.005 + 1.0 / 4096);
  EXPECT_DOUBLE_EQ(limits_of(Number::kFp16, wide, 8, TensorName::kOut, kernel).largest, 0.01 + 1.0 / 2048 / 16);
  // Sums in bf16: (2.5 + cp * 2^-8 / kernel) * kernel = 2.5 kernel + cp * 2^-8.
  const Accumulation narrow{false, false, false};
  EXPECT_DOUBLE_EQ(limits_of(Number::kBf16, narrow, 8, TensorName::kDq, kernel).normwise, 0.005 + 1.0 / 4096 + 8.0 / 256);
  EXPECT_DOUBLE_EQ(limits_of(Number::kBf16, narrow, 8, TensorName::kLse, kernel).normwise, 0.005 + 1e-5) << "lse is never narrow";
  // dKV alone narrow: dq is held to the wide limit.
  const Accumulation mixed{true, true, false};
  EXPECT_DOUBLE_EQ(limits_of(Number::kBf16, mixed, 8, TensorName::kDq, kernel).normwise, 0.005 + 1.0 / 4096);
  EXPECT_GT(limits_of(Number::kBf16, mixed, 8, TensorName::kDk, kernel).normwise, 0.03);
}

/// 3 documents of 5, 0 and 2 tokens, each padded to 8; two heads share one KV head.
Case small_case() {
  Case made;
  made.name = "small";
  made.method = "te_p2p";
  made.mask = attention::MaskShape::kDocuments;
  made.documents = {{5, 8}, {0, 8}, {2, 8}};
  made.query_tokens = made.key_tokens = 24;
  made.per_document = true;
  made.cp = 4;
  made.heads = {2, 1, 4, 3, 0.5};
  return made;
}

struct Judged {
  Case verified = small_case();
  AttentionTensors truth = truth_of(verified);
  [[nodiscard]] Judgement of(const AttentionTensors& whole) const {
    return judge(verified, Accumulation{}, whole, truth, std::array<ErrorFigures, kTensorCount>{});
  }
};

TEST(VerifyTruth, PaddingAttendsToNothing) {
  const Judged judged;
  const std::size_t row = 5;  // the first padded token
  EXPECT_EQ(judged.truth.lse[row * 2], -kInfinity);
  EXPECT_EQ(judged.truth.out[row * 6], 0.0);
  EXPECT_EQ(judged.truth.dk[row * 4], 0.0);
  EXPECT_TRUE(std::isfinite(judged.truth.lse[4 * 2]));
  // The first token of a document attends to itself alone: its out is its v, and v's first head serves both query heads.
  EXPECT_DOUBLE_EQ(judged.truth.out[16 * 6], judged.truth.out[16 * 6 + 3]);
  EXPECT_TRUE(judged.of(judged.truth).passed());
}

TEST(VerifyTruth, DocumentByDocumentIsTheWholeMask) {
  // The same from the definition on the whole stored sequence.
  Case verified = small_case();
  const AttentionTensors by_document = truth_of(verified);
  TruthShelf shelf;
  const AttentionTensors shelved = with_padding(verified, shelf.of(verified)->truth);
  EXPECT_EQ(by_document.dq, shelved.dq);
  const CaseReport report = run_case(verified, shelf);
  EXPECT_TRUE(report.passed()) << report.judgement.trouble;
  EXPECT_TRUE(report.pad_checked);
}

TEST(VerifyJudgement, ASmallErrorInAnyTensorFails) {
  const Judged judged;
  std::vector<double> AttentionTensors::* const members[] = {&AttentionTensors::out, &AttentionTensors::lse,
                                                             &AttentionTensors::dq, &AttentionTensors::dk, &AttentionTensors::dv};
  for (int i = 0; i < kTensorCount; ++i) {
    AttentionTensors whole = judged.truth;
    (whole.*members[i])[8] += 1e-8;  // a real token
    const Judgement judgement = judged.of(whole);
    EXPECT_FALSE(judgement.passed()) << i;
    EXPECT_EQ(static_cast<int>(judgement.worst()), i);
  }
}

TEST(VerifyJudgement, PaddingMustHoldNothing) {
  const Judged judged;
  AttentionTensors whole = judged.truth;
  whole.dv[5 * 3 + 1] = 1e-300;
  EXPECT_THAT(judged.of(whole).trouble, HasSubstr("dv of stored token 5, which attends to nothing"));
  whole = judged.truth;
  whole.lse[6 * 2] = kInfinity;  // FlashAttention 2 returns +inf there: ours may not
  EXPECT_THAT(judged.of(whole).trouble, HasSubstr("lse of stored token 6"));
  const Judgement foreign = judge(judged.verified, Accumulation{}, whole, judged.truth, std::array<ErrorFigures, kTensorCount>{},
                                  EmptyRows::kGradients);
  EXPECT_TRUE(foreign.passed()) << "another implementation's lse of padding is nobody's";
  whole.dk[6 * 4] = kNan;
  EXPECT_FALSE(
      judge(judged.verified, Accumulation{}, whole, judged.truth, std::array<ErrorFigures, kTensorCount>{}, EmptyRows::kGradients)
          .passed());
}

TEST(VerifyJudgement, OccupancyIsThatOfTheEmptiestRank) {
  // Zigzag of 8 over 4 ranks: chunks of 1 token; rank r holds chunks r and 7 - r of every document. Real tokens by rank: document
  // of 5: chunks 0-4 are real: ranks 0, 1, 2, 3 have 1, 1, 1, 2; of 2: ranks 0 and 1 have one. Sum 2, 2, 1, 2 of 6 stored each.
  const Judged judged;
  const Judgement judgement = judged.of(judged.truth);
  EXPECT_DOUBLE_EQ(judgement.occupancy, 1.0 / 6.0);
  EXPECT_TRUE(judgement.covered);
}

TEST(VerifyJudgement, PaddingThatChangesARealNumberIsSeen) {
  const Case tight = small_case();
  const Case loose = padded_twin(tight);
  EXPECT_EQ(loose.query_tokens, 24 + 3 * 8);
  const AttentionTensors truth_a = truth_of(tight), truth_b = truth_of(loose);
  EXPECT_TRUE(padding_changes_nothing(tight, truth_a, truth_a, loose, truth_b, truth_b));
  AttentionTensors moved = truth_b;
  moved.dv[32 * 3] += 1e-9;  // first token of the third document
  EXPECT_FALSE(padding_changes_nothing(tight, truth_a, truth_a, loose, moved, truth_b));
  moved = truth_b;
  moved.dv[6 * 3] += 1;  // padding
  EXPECT_TRUE(padding_changes_nothing(tight, truth_a, truth_a, loose, moved, truth_b));
}

}  // namespace
}  // namespace cpfit::kernels
