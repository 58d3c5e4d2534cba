// The text of the CUDA attention kernels, compiled for the host and run thread by thread, against the truth in fp64.
#include <gtest/gtest.h>

#include "emulated_block.h"

namespace cpfit::kernels::emulated {
namespace {

class KernelText : public testing::TestWithParam<Block> {};

TEST_P(KernelText, AgreesWithTheTruthInAnyOrderOfThreads) {
  const Tensors got = on_emulator(GetParam(), false);
  ASSERT_EQ(got.failure, "");
  block_case::expect_agreement(GetParam(), got);

  const Tensors reversed = on_emulator(GetParam(), true);
  ASSERT_EQ(reversed.failure, "");
  EXPECT_TRUE(block_case::same_bits(got.out, reversed.out) && block_case::same_bits(got.lse, reversed.lse));
  EXPECT_TRUE(block_case::same_bits(got.dq, reversed.dq) && block_case::same_bits(got.dk, reversed.dk) &&
              block_case::same_bits(got.dv, reversed.dv));
}

INSTANTIATE_TEST_SUITE_P(Blocks, KernelText, testing::ValuesIn(block_case::blocks()),
                         [](const testing::TestParamInfo<Block>& block) { return block.param.name; });

}  // namespace
}  // namespace cpfit::kernels::emulated
