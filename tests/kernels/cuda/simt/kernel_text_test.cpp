// The text of the CUDA kernels, compiled for the host and run thread by thread, against the truth in fp64.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "emulated_block.h"
#include "model/attention/mask.h"

namespace cpfit::kernels::emulated {
namespace {

using attention::BlockKind;
using attention::KeyRange;

double norm(const std::vector<double>& x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return std::sqrt(sum);
}
/// |x - truth| / |truth|; infinity when x has anything that is not finite.
double error_of(const std::vector<double>& x, const std::vector<double>& truth) {
  EXPECT_EQ(x.size(), truth.size());
  std::vector<double> difference(truth.size());
  for (std::size_t i = 0; i < truth.size(); ++i) {
    if (!std::isfinite(x[i])) return INFINITY;
    difference[i] = x[i] - truth[i];
  }
  const double size = norm(truth);
  return size == 0 ? norm(difference) : norm(difference) / size;
}
/// Largest difference of log-sum-exps; rows that attend to nothing must say so in both.
double lse_error(const std::vector<double>& lse, const std::vector<double>& truth) {
  double worst = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    if (std::isinf(truth[i])) {
      if (lse[i] != truth[i]) return INFINITY;
      continue;
    }
    worst = std::isnan(lse[i]) ? INFINITY : std::max(worst, std::abs(lse[i] - truth[i]));
  }
  return worst;
}
bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

class KernelText : public testing::TestWithParam<Block> {};

TEST_P(KernelText, AgreesWithTheTruthInAnyOrderOfThreads) {
  const Block& block = GetParam();
  const Tensors truth = on_cpu(block, Number::kFp64);
  const Tensors other = on_cpu(block, block.number == Number::kFp64 ? Number::kFp64 : Number::kFp32);
  const Tensors got = on_emulator(block, false);
  ASSERT_EQ(got.failure, "");
  const bool is_fp64 = block.number == Number::kFp64;
  EXPECT_LE(lse_error(got.lse, truth.lse), is_fp64 ? 1e-13 : 2e-5);  // scores of up to 40: 40 * 2^-24, the sum's roundings
  // As good as another kernel of the same type: both round the weights and the gradients of scores once before products.
  const auto check = [is_fp64](const char* name, const std::vector<double>& x, const std::vector<double>& t,
                        const std::vector<double>& o) {
    EXPECT_LE(error_of(x, t), 1.25 * error_of(o, t) + (is_fp64 ? 1e-14 : 1e-6))
        << name << ": the other kernel " << error_of(o, t);
  };
  check("out", got.out, truth.out, other.out);
  check("dq", got.dq, truth.dq, other.dq);
  check("dk", got.dk, truth.dk, other.dk);
  check("dv", got.dv, truth.dv, other.dv);

  const Tensors reversed = on_emulator(block, true);
  ASSERT_EQ(reversed.failure, "");
  EXPECT_TRUE(same_bits(got.out, reversed.out) && same_bits(got.lse, reversed.lse));
  EXPECT_TRUE(same_bits(got.dq, reversed.dq) && same_bits(got.dk, reversed.dk) && same_bits(got.dv, reversed.dv));
}

Block block_of(const char* name, Number number, std::int64_t queries, std::int64_t keys, Heads heads, BlockKind kind) {
  heads.scale = 1 / std::sqrt(static_cast<double>(heads.qk_dim));
  return {name, number, heads, kind, queries, keys, {}, {}, true};
}
/// Queries and keys at storage rows `row_of(local)`.
template <class RowOf>
Block mixed_block(const char* name, Number number, std::int64_t rows, const Heads& heads, const attention::MaskView& mask,
                  std::int64_t storage, RowOf row_of, std::int64_t key_shift) {
  Block block = block_of(name, number, rows, rows, heads, BlockKind::kMixed);
  for (std::int64_t i = 0; i < rows; ++i) {
    block.ranges.push_back(attention::visible_keys(mask, row_of(i), storage));
    block.positions.push_back(static_cast<std::int32_t>(row_of(i) - key_shift));
  }
  return block;
}

std::vector<Block> blocks() {
  std::vector<Block> all;
  all.push_back(block_of("bf16_full_odd_lengths", Number::kBf16, 77, 131, {2, 1, 64, 64}, BlockKind::kFull));
  all.push_back(block_of("fp16_causal_grouped_heads", Number::kFp16, 150, 150, {4, 2, 64, 64}, BlockKind::kCausal));
  all.push_back(block_of("bf16_causal_longer_keys_narrow_results", Number::kBf16, 70, 139, {2, 1, 128, 128}, BlockKind::kCausal));
  all.back().wide = false;
  all.push_back(block_of("bf16_causal_fewer_keys", Number::kBf16, 90, 41, {1, 1, 64, 64}, BlockKind::kCausal));
  all.push_back(block_of("bf16_latent_heads", Number::kBf16, 65, 97, {2, 2, 192, 128}, BlockKind::kCausal));
  all.push_back(block_of("fp16_small_odd_head", Number::kFp16, 33, 17, {3, 1, 40, 24}, BlockKind::kFull));
  all.push_back(block_of("bf16_one_token", Number::kBf16, 1, 1, {1, 1, 64, 64}, BlockKind::kCausal));
  all.push_back(mixed_block(
      "bf16_window", Number::kBf16, 200, {2, 1, 64, 64}, attention::window_mask(50), 200, [](std::int64_t i) { return i; }, 0));
  static const attention::Document kDocuments[] = {{0, 1, 8}, {8, 60, 64}, {72, 0, 0}, {72, 90, 104}, {176, 17, 24}};
  all.push_back(mixed_block(
      "fp16_documents_with_padding", Number::kFp16, 200, {2, 2, 64, 64}, attention::document_mask(kDocuments, 5), 200,
      [](std::int64_t i) { return i; }, 0));
  all.push_back(mixed_block(
      "bf16_striped_strictly_causal", Number::kBf16, 100, {1, 1, 64, 64}, attention::causal_mask(), 400,
      [](std::int64_t i) { return 4 * i + 1; }, -1));
  all.push_back(mixed_block(
      "bf16_zigzag_first_against_last", Number::kBf16, 128, {1, 1, 64, 64}, attention::causal_mask(), 512,
      [](std::int64_t i) { return i < 64 ? 64 + i : 384 + i - 64; }, 0));
  all.push_back(block_of("fp32_causal", Number::kFp32, 75, 75, {2, 1, 48, 48}, BlockKind::kCausal));
  all.push_back(block_of("fp32_full_one_key", Number::kFp32, 40, 1, {1, 1, 17, 5}, BlockKind::kFull));
  all.push_back(mixed_block(
      "fp32_documents", Number::kFp32, 200, {2, 1, 32, 16}, attention::document_mask(kDocuments, 5), 200,
      [](std::int64_t i) { return i; }, 0));
  all.push_back(block_of("fp64_causal_fewer_keys", Number::kFp64, 50, 37, {2, 2, 24, 40}, BlockKind::kCausal));
  all.push_back(block_of("bf16_head_of_odd_size", Number::kBf16, 50, 50, {2, 1, 20, 12}, BlockKind::kCausal));
  return all;
}

INSTANTIATE_TEST_SUITE_P(Blocks, KernelText, testing::ValuesIn(blocks()),
                         [](const testing::TestParamInfo<Block>& block) { return block.param.name; });

}  // namespace
}  // namespace cpfit::kernels::emulated
