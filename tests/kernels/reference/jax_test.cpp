// The truth against attention and gradients of an independent framework (jax_fixtures.py), inputs bit for bit the same.
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "kernels/reference/rope.h"
#include "kernels/reference/truth.h"
#include "tests/kernels/reference/attention_problems.h"

namespace cpfit::kernels {
namespace {

using nlohmann::json;

json fixtures() { return json::parse(std::ifstream(CPFIT_SOURCE_DIR "/tests/kernels/reference/jax_fixtures.json")); }

AttentionProblem problem_of(const json& c) {
  const auto heads = c.at("heads").get<std::vector<std::int32_t>>();
  AttentionProblem problem{c.at("name"), heads_of(heads[0], heads[1], heads[2], heads[3]), {}, c.at("queries"), c.at("keys")};
  using attention::MaskShape;
  problem.mask.shape = c.at("mask") == "full"     ? MaskShape::kFull
                       : c.at("mask") == "causal" ? MaskShape::kCausal
                       : c.at("mask") == "window" ? MaskShape::kWindow
                                                  : MaskShape::kDocuments;
  problem.mask.window = c.at("window");
  std::int64_t start = 0;
  for (const json& document : c.at("documents")) {
    problem.mask.documents.push_back({start, document[0], document[1]});
    start += document[1].get<std::int64_t>();
  }
  return problem;
}

std::vector<double> numbers_of(const json& values) {
  std::vector<double> numbers;
  for (const json& value : values) {
    numbers.push_back(value.is_string() ? -std::numeric_limits<double>::infinity() : value.get<double>());
  }
  return numbers;
}

TEST(Jax, AttentionAndGradientsAgree) {
  const json all = fixtures();
  ASSERT_EQ(all.at("cases").size(), 10U);
  for (const json& c : all.at("cases")) {
    const AttentionProblem problem = problem_of(c);
    const Heads& heads = problem.heads;
    ProblemTensors t = tensors_of(problem);
    std::vector<std::int32_t> positions(static_cast<std::size_t>(problem.keys));
    std::iota(positions.begin(), positions.end(), 0);
    if (c.at("rope")) {
      t.q = rotate(t.q, positions, heads.q, heads.qk_dim);
      t.k = rotate(t.k, positions, heads.kv, heads.qk_dim);
    }
    const TrueAttention truth = true_attention(heads, problem.mask.view(), t.q, t.k, t.v);
    TrueGradients gradients = true_gradients(heads, problem.mask.view(), t.q, t.k, t.v, t.dout);
    if (c.at("rope")) {
      gradients.dq = rotate_gradient(gradients.dq, positions, heads.q, heads.qk_dim);
      gradients.dk = rotate_gradient(gradients.dk, positions, heads.kv, heads.qk_dim);
    }
    const auto check = [&](const char* name, const std::vector<double>& ours, std::int64_t width) {
      const std::vector<double> theirs = numbers_of(c.at(name));
      ASSERT_EQ(ours.size(), theirs.size());
      EXPECT_LE(error_of(ours, theirs, width).worst_row, 1e-14) << problem.name << " " << name;
    };
    check("out", truth.out, heads.q * heads.v_dim);
    check("lse", truth.lse, heads.q);
    check("dq", gradients.dq, heads.q * heads.qk_dim);
    check("dk", gradients.dk, heads.kv * heads.qk_dim);
    check("dv", gradients.dv, heads.kv * heads.v_dim);
  }
}

}  // namespace
}  // namespace cpfit::kernels
