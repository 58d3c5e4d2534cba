// Attention on the CPU against the truth: a whole sequence as one block and cut into the blocks of a ring, in every number type.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/reference/cpu_operators.h"
#include "kernels/reference/truth.h"
#include "tests/kernels/reference/attention_problems.h"

namespace cpfit::kernels {
namespace {

using attention::BlockKind;
using attention::MaskShape;

/// What one block of Operators returns, downloaded.
struct BlockResult {
  std::vector<double> out, lse, dq, dk, dv;
};

/// The whole problem as one block; `kind` kMixed reads the arrays.
BlockResult as_one_block(Operators& operators, const AttentionProblem& problem, const ProblemTensors& t, Number number,
                         Number result, BlockKind kind = BlockKind::kMixed) {
  const Heads& heads = problem.heads;
  std::vector<std::int32_t> ranges, positions;
  for (const attention::KeyRange& range :
       query_ranges({attention::Layout::kContiguous, false, problem.queries, 1}, problem.mask, problem.keys, 0)) {
    ranges.push_back(range.begin);
    ranges.push_back(range.end);
  }
  for (std::int32_t key = 0; key < problem.keys; ++key) positions.push_back(key);
  const Array range_array = operators.upload_int(problem.queries, 2, ranges);
  const Array position_array = operators.upload_int(problem.keys, 1, positions);
  const BlockMask mask{kind, range_array, position_array};
  const Array q = operators.upload(number, problem.queries, heads.q * heads.qk_dim, t.q);
  const Array k = operators.upload(number, problem.keys, heads.kv * heads.qk_dim, t.k);
  const Array v = operators.upload(number, problem.keys, heads.kv * heads.v_dim, t.v);
  const Array dout = operators.upload(number, problem.queries, heads.q * heads.v_dim, t.dout);
  const Array out = operators.allocate(result, problem.queries, heads.q * heads.v_dim);
  const Array lse = operators.allocate(operators.sum_number(), problem.queries, heads.q);
  const Array delta = operators.allocate(operators.sum_number(), problem.queries, heads.q);
  const Array dq = operators.allocate(result, problem.queries, heads.q * heads.qk_dim);
  const Array dk = operators.allocate(result, problem.keys, heads.kv * heads.qk_dim);
  const Array dv = operators.allocate(result, problem.keys, heads.kv * heads.v_dim);
  operators.forward(heads, mask, q, k, v, out, lse);
  operators.row_delta(heads, out, dout, delta);
  operators.backward(heads, mask, q, k, v, dout, lse, delta, dq, dk, dv);
  return {operators.download(out), operators.download(lse), operators.download(dq), operators.download(dk),
          operators.download(dv)};
}

BlockResult truth_of(const AttentionProblem& problem, const ProblemTensors& t) {
  TrueAttention truth = true_attention(problem.heads, problem.mask.view(), t.q, t.k, t.v);
  TrueGradients gradients = true_gradients(problem.heads, problem.mask.view(), t.q, t.k, t.v, t.dout);
  return {std::move(truth.out), std::move(truth.lse), std::move(gradients.dq), std::move(gradients.dk), std::move(gradients.dv)};
}

/// Errors of every tensor against the truth of the same inputs; both measures within the bound.
void expect_close(const AttentionProblem& problem, const BlockResult& truth, const BlockResult& computed, double bound) {
  const Heads& heads = problem.heads;
  const auto check = [&](const char* name, const std::vector<double>& a, const std::vector<double>& b, std::int64_t width) {
    ASSERT_EQ(a.size(), b.size());
    const TensorError error = error_of(a, b, width);
    EXPECT_LE(error.normwise, bound) << problem.name << " " << name;
    EXPECT_LE(error.worst_row, bound) << problem.name << " " << name;
  };
  check("out", computed.out, truth.out, heads.q * heads.v_dim);
  check("lse", computed.lse, truth.lse, heads.q);
  check("dq", computed.dq, truth.dq, heads.q * heads.qk_dim);
  check("dk", computed.dk, truth.dk, heads.kv * heads.qk_dim);
  check("dv", computed.dv, truth.dv, heads.kv * heads.v_dim);
}

std::vector<AttentionProblem> problems() {
  const Mask causal{MaskShape::kCausal, 0, {}};
  const Mask full{MaskShape::kFull, 0, {}};
  std::vector<AttentionProblem> all;
  for (const std::int64_t length : {1, 7, 63, 65, 129, 300}) {
    all.push_back({"causal " + std::to_string(length), heads_of(2, 1, 16, 16), causal, length, length});
    all.push_back({"full " + std::to_string(length), heads_of(2, 2, 8, 8), full, length, length});
    all.push_back({"window " + std::to_string(length), heads_of(2, 1, 16, 8), {MaskShape::kWindow, 50, {}}, length, length});
  }
  all.push_back({"causal, more keys", heads_of(4, 1, 24, 16), causal, 65, 300});
  all.push_back({"causal, more queries", heads_of(4, 2, 24, 16), causal, 300, 65});
  all.push_back({"full, cross", heads_of(2, 1, 8, 12), full, 129, 300});
  const Mask documents = documents_of({100, 1, 0, 7, 180, 3}, 8);
  all.push_back({"documents", heads_of(2, 1, 16, 16), documents, tokens_of(documents), tokens_of(documents)});
  const Mask windowed = documents_of({100, 1, 0, 7, 180, 3}, 8, 20);
  all.push_back({"documents, window", heads_of(2, 1, 16, 16), windowed, tokens_of(windowed), tokens_of(windowed)});
  return all;
}

TEST(CpuOperators, DoubleAgreesWithTheTruth) {
  const auto operators = make_cpu_operators(Number::kFp64);
  for (const AttentionProblem& problem : problems()) {
    const ProblemTensors t = tensors_of(problem);
    const BlockResult truth = truth_of(problem, t);
    expect_close(problem, truth, as_one_block(*operators, problem, t, Number::kFp64, Number::kFp64), 1e-12);
  }
}

TEST(CpuOperators, FloatAgreesWithTheTruth) {
  const auto operators = make_cpu_operators(Number::kFp32);
  for (const AttentionProblem& problem : problems()) {
    const ProblemTensors t = tensors_of(problem);
    const BlockResult truth = truth_of(problem, t);
    expect_close(problem, truth, as_one_block(*operators, problem, t, Number::kFp32, Number::kFp32), 1e-5);
  }
}

/// Unit roundoff: half the distance of neighbours at 1.
constexpr double kRoundoffBf16 = 0x1p-8, kRoundoffFp16 = 0x1p-11;

TEST(CpuOperators, SixteenBitNumbersStayWithinAFewRoundings) {
  // Against the truth of the same inputs (7 fraction bits: exact in both types). Each rounding on the way costs up to one
  // roundoff u: P and the result in out; P, the scores' gradient and the result in the gradients, and delta follows a rounded
  // out. Measured: at most 1.0 u over a tensor and 1.3 u in its worst row, for errors average out; the bound is 2 u.
  const auto operators = make_cpu_operators(Number::kFp32);
  for (const AttentionProblem& problem : problems()) {
    const ProblemTensors t = tensors_of(problem, 7);
    const BlockResult truth = truth_of(problem, t);
    expect_close(problem, truth, as_one_block(*operators, problem, t, Number::kBf16, Number::kBf16), 2 * kRoundoffBf16);
    expect_close(problem, truth, as_one_block(*operators, problem, t, Number::kBf16, Number::kFp32), 2 * kRoundoffBf16);
    expect_close(problem, truth, as_one_block(*operators, problem, t, Number::kFp16, Number::kFp16), 2 * kRoundoffFp16);
  }
}

TEST(CpuOperators, SixteenBitInputsInDoubleAreTheTruthOfThoseInputs) {
  const auto operators = make_cpu_operators(Number::kFp64);
  for (const AttentionProblem& problem : problems()) {
    const ProblemTensors t = tensors_of(problem, 7);
    const BlockResult truth = truth_of(problem, t);
    expect_close(problem, truth, as_one_block(*operators, problem, t, Number::kBf16, Number::kFp64), 1e-12);
  }
}

TEST(CpuOperators, ProbabilitiesAndScoreGradientsAreRoundedBeforeTheyAreMultiplied) {
  // One query, two keys, scores 0 and -0.5: unnormalised probabilities 1 and p = exp(-0.5) = 0.6065, in bf16 0.60546875. The sum
  // is of the unrounded ones: out = (v0 + bf16(p) v1) / (1 + p).
  const auto operators = make_cpu_operators(Number::kFp32);
  const AttentionProblem problem{"by hand", {1, 1, 1, 1, 1.0}, {MaskShape::kFull, 0, {}}, 1, 2};
  const ProblemTensors t{{1}, {0, -0.5}, {0, 64}, {1}};
  const BlockResult result = as_one_block(*operators, problem, t, Number::kBf16, Number::kFp32);
  const double p = std::exp(-0.5), sum = 1 + p;
  EXPECT_NEAR(result.out[0], 64 * 0.60546875 / sum, 1e-5);
  EXPECT_GT(std::abs(result.out[0] - 64 * p / sum), 0.03);
  EXPECT_NEAR(result.lse[0], std::log(sum), 1e-6);
  // Backward: P = (1, p) / sum; dv = bf16(P): 1 / sum = 0.62246 lies between 159/256 and 160/256, p / sum = 0.37754 between
  // 193/512 and 194/512.
  EXPECT_EQ(result.dv[0], 159.0 / 256);
  EXPECT_EQ(result.dv[1], 193.0 / 512);
  // dS = P (dP - delta), dP = (0, 64), delta = out as computed: -15.0 and 15.0 to be rounded to multiples of 1/16.
  const double ds_1 = p / sum * (64 - result.out[0]);
  EXPECT_EQ(result.dk[1], std::round(ds_1 * 16) / 16);
  EXPECT_EQ(result.dq[0], -0.5 * std::round(ds_1 * 16) / 16);
}

TEST(CpuOperators, FullAndCausalBlocksAreWhatTheirArraysSay) {
  const auto operators = make_cpu_operators(Number::kFp32);
  for (const AttentionProblem& problem : problems()) {
    if (problem.mask.shape != MaskShape::kFull && problem.mask.shape != MaskShape::kCausal) continue;
    const ProblemTensors t = tensors_of(problem);
    const BlockKind kind = problem.mask.shape == MaskShape::kFull ? BlockKind::kFull : BlockKind::kCausal;
    const BlockResult by_arrays = as_one_block(*operators, problem, t, Number::kFp32, Number::kFp32);
    const BlockResult by_kind = as_one_block(*operators, problem, t, Number::kFp32, Number::kFp32, kind);
    EXPECT_EQ(by_kind.out, by_arrays.out) << problem.name;
    EXPECT_EQ(by_kind.lse, by_arrays.lse) << problem.name;
    EXPECT_EQ(by_kind.dq, by_arrays.dq) << problem.name;
    EXPECT_EQ(by_kind.dk, by_arrays.dk) << problem.name;
    EXPECT_EQ(by_kind.dv, by_arrays.dv) << problem.name;
  }
}

TEST(CpuOperators, RowsThatSeeNothingAreExactlyNothing) {
  const Mask documents = documents_of({100, 1, 0, 7}, 8);
  const AttentionProblem problem{"padding", heads_of(2, 1, 16, 16), documents, tokens_of(documents), tokens_of(documents)};
  const auto operators = make_cpu_operators(Number::kFp32);
  const ProblemTensors t = tensors_of(problem);
  const BlockResult result = as_one_block(*operators, problem, t, Number::kFp32, Number::kFp32);
  const std::vector<std::uint8_t> real = real_tokens({attention::Layout::kContiguous, false, problem.queries, 1}, documents, 0);
  ASSERT_EQ(std::count(real.begin(), real.end(), 0), 4 + 7 + 1);
  for (std::size_t row = 0; row < real.size(); ++row) {
    if (real[row] != 0) continue;
    for (std::size_t i = row * 2; i < row * 2 + 2; ++i) EXPECT_EQ(result.lse[i], -std::numeric_limits<double>::infinity());
    for (std::size_t i = row * 32; i < row * 32 + 32; ++i) EXPECT_TRUE(result.out[i] == 0 && result.dq[i] == 0);
    for (std::size_t i = row * 16; i < row * 16 + 16; ++i) EXPECT_TRUE(result.dk[i] == 0 && result.dv[i] == 0);
  }
}

TEST(CpuOperators, LargeScoresStayFinite) {
  // Scores of several hundred: exp of them overflows float, the running maximum must not let it.
  AttentionProblem problem{"large scores", heads_of(2, 1, 16, 16), {MaskShape::kCausal, 0, {}}, 300, 300};
  problem.heads.scale *= 40;
  const auto operators = make_cpu_operators(Number::kFp32);
  const ProblemTensors t = tensors_of(problem);
  const BlockResult truth = truth_of(problem, t);
  ASSERT_GT(*std::max_element(truth.lse.begin(), truth.lse.end()), 100);
  // A score of 400 has an error of 400 * 2^-24 = 2e-5 by itself, which is the relative error of its weight.
  expect_close(problem, truth, as_one_block(*operators, problem, t, Number::kFp32, Number::kFp32), 2e-5);
}

/// The problem cut over ranks, every rank's queries against every rank's keys, block by block; merged as they come or, deferred,
/// log sums first. Gradients from the final lse. This is a ring without its messages.
BlockResult block_by_block(Operators& operators, const AttentionProblem& problem, const Cut& cut, const ProblemTensors& t,
                           Number number, bool deferred) {
  const Heads& heads = problem.heads;
  const Number sum = operators.sum_number();
  const std::int64_t rows = cut.tokens_per_rank();
  struct Shares {
    Array q, k, v, dout, ranges, positions, dk, dv;
  };
  const auto share_of = [&](const std::vector<double>& values, std::int64_t columns, const Array& index) {
    const Array share = operators.allocate(number, rows, columns);
    operators.gather_rows(operators.upload(number, cut.tokens, columns, values), index, share);
    return share;
  };
  const std::int64_t q_columns = heads.q * heads.qk_dim, k_columns = heads.kv * heads.qk_dim;
  const std::int64_t v_columns = heads.kv * heads.v_dim, out_columns = heads.q * heads.v_dim;
  std::vector<Shares> shares;
  for (std::int32_t rank = 0; rank < cut.cp; ++rank) {
    const Array index = operators.upload_int(rows, 1, storage_rows(cut, problem.mask, rank));
    std::vector<std::int32_t> ranges;
    for (const attention::KeyRange& range : query_ranges(cut, problem.mask, cut.tokens, rank)) {
      ranges.insert(ranges.end(), {range.begin, range.end});
    }
    shares.push_back({share_of(t.q, q_columns, index), share_of(t.k, k_columns, index), share_of(t.v, v_columns, index),
                      share_of(t.dout, out_columns, index), operators.upload_int(rows, 2, ranges), index,
                      operators.allocate(sum, rows, k_columns), operators.allocate(sum, rows, v_columns)});
  }
  const Array outs = operators.allocate(sum, cut.tokens, out_columns), lses = operators.allocate(sum, cut.tokens, heads.q);
  const Array dqs = operators.allocate(sum, cut.tokens, q_columns), dks = operators.allocate(sum, cut.tokens, k_columns);
  const Array dvs = operators.allocate(sum, cut.tokens, v_columns);
  for (std::int32_t rank = 0; rank < cut.cp; ++rank) {
    const Shares& own = shares[static_cast<std::size_t>(rank)];
    const View out = outs.view().slice(rank * rows, rows), lse = lses.view().slice(rank * rows, rows);
    operators.fill(lse, -std::numeric_limits<double>::infinity());
    std::vector<std::pair<Array, Array>> parts;
    for (const Shares& other : shares) {
      const Array part = operators.allocate(sum, rows, out_columns), part_lse = operators.allocate(sum, rows, heads.q);
      operators.forward(heads, {BlockKind::kMixed, own.ranges, other.positions}, own.q, other.k, other.v, part, part_lse);
      if (deferred) {
        operators.merge_lse(MergeForm::kStable, part_lse, lse);
        parts.emplace_back(part, part_lse);
      } else {
        operators.merge(heads, MergeForm::kStable, part, part_lse, out, lse);
      }
    }
    for (const auto& [part, part_lse] : parts) operators.add_weighted(heads, part, part_lse, lse, out);
    const Array delta = operators.allocate(sum, rows, heads.q);
    operators.row_delta(heads, out, own.dout, delta);
    for (const Shares& other : shares) {
      const Array dq = operators.allocate(sum, rows, q_columns), dk = operators.allocate(sum, rows, k_columns);
      const Array dv = operators.allocate(sum, rows, v_columns);
      operators.backward(heads, {BlockKind::kMixed, own.ranges, other.positions}, own.q, other.k, other.v, own.dout, lse, delta,
                         dq, dk, dv);
      operators.add(dq, dqs.view().slice(rank * rows, rows));
      operators.add(dk, other.dk);
      operators.add(dv, other.dv);
    }
  }
  for (std::int32_t rank = 0; rank < cut.cp; ++rank) {
    operators.copy(shares[static_cast<std::size_t>(rank)].dk, dks.view().slice(rank * rows, rows));
    operators.copy(shares[static_cast<std::size_t>(rank)].dv, dvs.view().slice(rank * rows, rows));
  }
  const Array back = operators.upload_int(cut.tokens, 1, unshard_rows(cut, problem.mask));
  const auto unsharded = [&](const Array& all) {
    const Array whole = operators.allocate(sum, cut.tokens, all.view().row_elements);
    operators.gather_rows(all, back, whole);
    return operators.download(whole);
  };
  return {unsharded(outs), unsharded(lses), unsharded(dqs), unsharded(dks), unsharded(dvs)};
}

TEST(CpuOperators, BlocksOfEveryCutAddUpToTheTruth) {
  using attention::Layout;
  const auto wide = make_cpu_operators(Number::kFp64), narrow = make_cpu_operators(Number::kFp32);
  const std::int32_t cp = 4;
  const Mask documents = documents_of({75, 1, 0, 7, 100, 8 * 3 + 1}, 2 * cp);
  const std::int64_t tokens = tokens_of(documents);
  const std::vector<std::pair<Cut, Mask>> cuts = {
      {{Layout::kZigzag, false, 2 * cp * 27, cp}, {MaskShape::kCausal, 0, {}}},  // chunks of 27: tiles cross every seam
      {{Layout::kContiguous, false, cp * 33, cp}, {MaskShape::kFull, 0, {}}},
      {{Layout::kStriped, false, cp * 41, cp}, {MaskShape::kCausal, 0, {}}},
      {{Layout::kZigzag, false, 2 * cp * 27, cp}, {MaskShape::kWindow, 31, {}}},
      {{Layout::kZigzag, true, tokens, cp}, documents},
      {{Layout::kZigzag, false, tokens, cp}, documents},
  };
  for (const auto& [cut, mask] : cuts) {
    const AttentionProblem problem{"cut", heads_of(4, 2, 16, 8), mask, cut.tokens, cut.tokens};
    const ProblemTensors t = tensors_of(problem, 7);
    const BlockResult truth = truth_of(problem, t);
    for (const bool deferred : {false, true}) {
      expect_close(problem, truth, block_by_block(*wide, problem, cut, t, Number::kFp64, deferred), 1e-12);
      expect_close(problem, truth, block_by_block(*narrow, problem, cut, t, Number::kFp32, deferred), 1e-5);
      expect_close(problem, truth, block_by_block(*narrow, problem, cut, t, Number::kBf16, deferred), 2 * kRoundoffBf16);
    }
  }
}

}  // namespace
}  // namespace cpfit::kernels
