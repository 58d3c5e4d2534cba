// Operators on the CPU against the truth: attention of a whole sequence as one block, in every number type.
#include <gtest/gtest.h>

#include <cmath>

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

/// Errors of every tensor against the truth of the same inputs; asserts both measures.
void expect_close(const AttentionProblem& problem, const ProblemTensors& t, const BlockResult& computed, double bound) {
  const Heads& heads = problem.heads;
  const TrueAttention truth = true_attention(heads, problem.mask.view(), t.q, t.k, t.v);
  const TrueGradients gradients = true_gradients(heads, problem.mask.view(), t.q, t.k, t.v, t.dout);
  const auto check = [&](const char* name, const std::vector<double>& a, const std::vector<double>& b, std::int64_t width) {
    ASSERT_EQ(a.size(), b.size());
    const TensorError error = error_of(a, b, width);
    EXPECT_LE(error.normwise, bound) << problem.name << " " << name;
    EXPECT_LE(error.worst_row, bound) << problem.name << " " << name;
  };
  check("out", computed.out, truth.out, heads.q * heads.v_dim);
  check("lse", computed.lse, truth.lse, heads.q);
  check("dq", computed.dq, gradients.dq, heads.q * heads.qk_dim);
  check("dk", computed.dk, gradients.dk, heads.kv * heads.qk_dim);
  check("dv", computed.dv, gradients.dv, heads.kv * heads.v_dim);
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
    expect_close(problem, t, as_one_block(*operators, problem, t, Number::kFp64, Number::kFp64), 1e-12);
  }
}

TEST(CpuOperators, FloatAgreesWithTheTruth) {
  const auto operators = make_cpu_operators(Number::kFp32);
  for (const AttentionProblem& problem : problems()) {
    const ProblemTensors t = tensors_of(problem);
    expect_close(problem, t, as_one_block(*operators, problem, t, Number::kFp32, Number::kFp32), 1e-5);
  }
}

}  // namespace
}  // namespace cpfit::kernels
