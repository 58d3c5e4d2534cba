// Attention of one block on the device against the truth in fp64: the blocks that the emulator is given, larger ones, and cuDNN.
#include <gtest/gtest.h>

#include <cmath>

#include "../kernels/cuda/block_case.h"
#include "on_gpu.h"

namespace cpfit::kernels::block_case {
namespace {

using attention::BlockKind;

Number sum_of(const Block& block) { return block.number == Number::kFp64 ? Number::kFp64 : Number::kFp32; }

/// Lengths at which many thread blocks work side by side. Heads as in production.
std::vector<Block> large_blocks() {
  std::vector<Block> all;
  const auto add = [&](const char* name, Number number, std::int64_t queries, std::int64_t keys, Heads heads, BlockKind kind) {
    heads.scale = 1 / std::sqrt(static_cast<double>(heads.qk_dim));
    all.push_back({name, number, heads, kind, queries, keys, {}, {}, true});
  };
  add("large_bf16_causal", Number::kBf16, 1024, 1024, {8, 1, 128, 128}, BlockKind::kCausal);
  add("large_bf16_ring_step", Number::kBf16, 1024, 512, {8, 2, 128, 128}, BlockKind::kFull);
  add("large_fp16_causal_prefix", Number::kFp16, 512, 1536, {4, 4, 64, 64}, BlockKind::kCausal);
  add("large_bf16_latent_heads", Number::kBf16, 700, 700, {4, 4, 192, 128}, BlockKind::kCausal);
  add("large_fp32_causal", Number::kFp32, 500, 500, {2, 1, 128, 128}, BlockKind::kCausal);
  return all;
}

class GpuBlock : public testing::TestWithParam<Block> {};

TEST_P(GpuBlock, AgreesWithTheTruthAndWithItself) {
  CPFIT_NEEDS_GPU();
  const auto operators = make_cuda_operators(0, sum_of(GetParam()));
  const Tensors got = run_block(*operators, GetParam());
  expect_agreement(GetParam(), got);
  const Tensors again = run_block(*operators, GetParam());
  EXPECT_TRUE(same_bits(got.out, again.out) && same_bits(got.lse, again.lse));
  EXPECT_TRUE(same_bits(got.dq, again.dq) && same_bits(got.dk, again.dk) && same_bits(got.dv, again.dv));
  const AttentionPathCounts paths = operators->attention_paths();
  const bool small_numbers = GetParam().number == Number::kBf16 || GetParam().number == Number::kFp16;
  EXPECT_EQ(paths.tensor_cores, small_numbers && GetParam().heads.qk_dim % 8 == 0 ? 4 : 0);
  EXPECT_EQ(paths.tensor_cores + paths.plain, 4);
}

const auto kName = [](const testing::TestParamInfo<Block>& block) { return block.param.name; };
INSTANTIATE_TEST_SUITE_P(Small, GpuBlock, testing::ValuesIn(blocks()), kName);
INSTANTIATE_TEST_SUITE_P(Large, GpuBlock, testing::ValuesIn(large_blocks()), kName);

class CudnnBlock : public testing::TestWithParam<Block> {};

TEST_P(CudnnBlock, AgreesWithTheTruth) {
  CPFIT_NEEDS_GPU();
  if (const std::string reason = why_not(AttentionPath::kCudnn); !reason.empty()) GTEST_SKIP() << "waived: " << reason;
  const auto operators = make_cuda_operators(0, Number::kFp32, AttentionPath::kCudnn);
  Block block = GetParam();
  block.wide = false;  // cuDNN's own results; delta then comes from a rounded out, as in the frameworks
  const Tensors got = run_block(*operators, block);
  expect_agreement(block, got, 2.5);  // what a ring over it may have (kernels/verify/judge.h)
  EXPECT_EQ(operators->attention_paths().cudnn, 2) << "cuDNN did not take this block; our own kernels did";
}

std::vector<Block> cudnn_blocks() {
  std::vector<Block> chosen;
  for (const Block& block : large_blocks()) {
    if (block.number != Number::kFp32) chosen.push_back(block);
  }
  return chosen;
}
INSTANTIATE_TEST_SUITE_P(Large, CudnnBlock, testing::ValuesIn(cudnn_blocks()), kName);

}  // namespace
}  // namespace cpfit::kernels::block_case
