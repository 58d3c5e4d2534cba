// The truth against finite differences of its own forward pass, and against cases small enough to work out by hand.
#include "kernels/reference/truth.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/reference/rope.h"
#include "tests/kernels/reference/attention_problems.h"

namespace cpfit::kernels {
namespace {

using attention::MaskShape;

std::vector<AttentionProblem> small_problems() {
  const Mask documents = documents_of({3, 1, 0, 4}, 4);
  return {
      {"full", heads_of(2, 2, 4, 4), {MaskShape::kFull, 0, {}}, 5, 5},
      {"causal", heads_of(4, 2, 4, 4), {MaskShape::kCausal, 0, {}}, 7, 7},
      {"window", heads_of(2, 1, 4, 6), {MaskShape::kWindow, 3, {}}, 9, 9},
      {"documents", heads_of(2, 2, 6, 4), documents, tokens_of(documents), tokens_of(documents)},
      {"causal, more keys", heads_of(2, 1, 4, 4), {MaskShape::kCausal, 0, {}}, 3, 8},
      {"causal, more queries", heads_of(2, 1, 4, 4), {MaskShape::kCausal, 0, {}}, 8, 3},
      {"full, cross", heads_of(2, 1, 4, 2), {MaskShape::kFull, 0, {}}, 3, 5},
  };
}

double loss_of(const AttentionProblem& problem, const ProblemTensors& t) {
  const TrueAttention truth = true_attention(problem.heads, problem.mask.view(), t.q, t.k, t.v);
  return std::inner_product(truth.out.begin(), truth.out.end(), t.dout.begin(), 0.0);
}

/// Central differences with step h: the error is h^2 / 6 times a third derivative of order 10, and rounding of order 1e-15 / h.
/// h = 1e-4 leaves about 1e-7 of the first and 1e-11 of the second.
void expect_derivative(const AttentionProblem& problem, ProblemTensors tensors, std::vector<double> ProblemTensors::* input,
                       const std::vector<double>& gradient, const char* name) {
  constexpr double kStep = 1e-4;
  ASSERT_EQ(gradient.size(), (tensors.*input).size());
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    double& x = (tensors.*input)[i];
    const double kept = x;
    x = kept + kStep;
    const double above = loss_of(problem, tensors);
    x = kept - kStep;
    const double below = loss_of(problem, tensors);
    x = kept;
    EXPECT_NEAR(gradient[i], (above - below) / (2 * kStep), 1e-6) << problem.name << " " << name << " " << i;
  }
}

TEST(Truth, GradientsAreTheDerivativesOfTheForwardPass) {
  for (const AttentionProblem& problem : small_problems()) {
    const ProblemTensors t = tensors_of(problem);
    const TrueGradients gradients = true_gradients(problem.heads, problem.mask.view(), t.q, t.k, t.v, t.dout);
    expect_derivative(problem, t, &ProblemTensors::q, gradients.dq, "dq");
    expect_derivative(problem, t, &ProblemTensors::k, gradients.dk, "dk");
    expect_derivative(problem, t, &ProblemTensors::v, gradients.dv, "dv");
  }
}

TEST(Truth, TwoKeysByHand) {
  // One head of one number, scale 1: q = 1, k = (0, ln 3), so the weights are 1/4 and 3/4 and lse = ln(1 + 3).
  const Heads heads{1, 1, 1, 1, 1.0};
  const std::vector<double> q = {1}, k = {0, std::log(3.0)}, v = {8, 4}, dout = {1};
  const TrueAttention truth = true_attention(heads, attention::full_mask(), q, k, v);
  EXPECT_NEAR(truth.out[0], 8 * 0.25 + 4 * 0.75, 1e-15);
  EXPECT_NEAR(truth.lse[0], std::log(4.0), 1e-15);
  // d score = weight * (v - out): 1/4 (8 - 5) and 3/4 (4 - 5); dq = sum d score * k, dk = d score * q, dv = weight.
  const TrueGradients gradients = true_gradients(heads, attention::full_mask(), q, k, v, dout);
  EXPECT_NEAR(gradients.dq[0], -0.75 * std::log(3.0), 1e-15);
  EXPECT_NEAR(gradients.dk[0], 0.75, 1e-15);
  EXPECT_NEAR(gradients.dk[1], -0.75, 1e-15);
  EXPECT_NEAR(gradients.dv[0], 0.25, 1e-15);
  EXPECT_NEAR(gradients.dv[1], 0.75, 1e-15);
}

TEST(Truth, QueriesThatSeeNothing) {
  // Documents of 3, 1, 0 and 4 tokens, stored in 4, 4, 0, 4: rows 3, 5, 6 and 7 are padding.
  const AttentionProblem problem = small_problems()[3];
  ASSERT_EQ(problem.queries, 12);
  const ProblemTensors t = tensors_of(problem);
  const TrueAttention truth = true_attention(problem.heads, problem.mask.view(), t.q, t.k, t.v);
  const TrueGradients gradients = true_gradients(problem.heads, problem.mask.view(), t.q, t.k, t.v, t.dout);
  for (const std::size_t row : {3U, 5U, 6U, 7U}) {
    for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(truth.lse[row * 2 + i], -std::numeric_limits<double>::infinity());
    for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(truth.out[row * 8 + i], 0);
    for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(gradients.dq[row * 12 + i], 0);
    for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(gradients.dk[row * 12 + i], 0);
    for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(gradients.dv[row * 8 + i], 0);
  }
  // A document of one token attends to itself alone: out = v.
  for (std::size_t i = 0; i < 8; ++i) EXPECT_DOUBLE_EQ(truth.out[4 * 8 + i], t.v[4 * 8 + i]);
}

TEST(Rope, RotatesHalvesByPositionAndBack) {
  // dim 4: pairs (0, 2) by position * 1 and (1, 3) by position * base^(-1/2) = position / 100.
  const std::vector<double> x = {1, 1, 0, 0};
  const std::vector<std::int32_t> positions = {7};
  const std::vector<double> y = rotate(x, positions, 1, 4);
  EXPECT_NEAR(y[0], std::cos(7.0), 1e-15);
  EXPECT_NEAR(y[2], std::sin(7.0), 1e-15);
  EXPECT_NEAR(y[1], std::cos(0.07), 1e-15);
  EXPECT_NEAR(y[3], std::sin(0.07), 1e-15);
  const std::vector<double> back = rotate_gradient(y, positions, 1, 4);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(back[i], x[i], 1e-15);
}

TEST(Rope, ScoresDependOnDistanceAlone) {
  const std::vector<double> q = grid_numbers(5, 8), k = grid_numbers(6, 8);
  const auto score = [&](std::int32_t query, std::int32_t key) {
    const auto a = rotate(q, std::vector{query}, 1, 8), b = rotate(k, std::vector{key}, 1, 8);
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  };
  EXPECT_NEAR(score(5, 2), score(105, 102), 1e-12);
  EXPECT_GT(std::abs(score(5, 2) - score(5, 3)), 1e-3);
}

}  // namespace
}  // namespace cpfit::kernels
