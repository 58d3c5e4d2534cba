// The text of the kernels that sum and move, run thread by thread, against the CPU operators.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "device_twin.h"
#include "kernels/cuda/moves.cuh"
#include "kernels/cuda/sums.cuh"
#include "kernels/reference/cpu_operators.h"
#include "kernels/reference/fixture_numbers.h"

namespace cpfit::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int64_t kRows = 13;
constexpr Heads kHeads = {3, 1, 8, 8, 1.0};
constexpr std::int64_t kHeadRowCount = kRows * 3;

std::vector<double> numbers(std::uint32_t seed) { return grid_numbers(seed, kRows * 3 * 8, 7); }
/// Some rows have attended to nothing, in the part, in the sum, in both; some merge by far-apart weights.
std::vector<double> log_sums(std::uint32_t seed) {
  std::vector<double> lse = grid_numbers(seed, kHeadRowCount, 7);
  for (std::size_t i = seed % 2; i < lse.size(); i += 3) lse[i] = -kInfinity;
  lse[5] = 60;
  return lse;
}

void run(std::int64_t blocks, int threads, std::size_t shared_bytes, const std::function<void()>& kernel) {
  ASSERT_EQ(simt::run({static_cast<int>(blocks), 1, threads, shared_bytes, false}, kernel), "");
}

template <class Element>
std::vector<Element> as(const std::vector<double>& values) {
  std::vector<Element> result;
  for (const double value : values) result.push_back(device::from_real<Element>(value));
  return result;
}
template <class Element>
void expect_same(const std::vector<Element>& got, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double value = device::to_real<double>(got[i]);
    if (std::isinf(expected[i])) {
      EXPECT_EQ(value, expected[i]) << i;
    } else {
      EXPECT_NEAR(value, expected[i], tolerance * std::max(1.0, std::abs(expected[i]))) << i;
    }
  }
}

/// merge and add_weighted of bf16 parts into `Sum`.
template <class Sum>
void check_merge(Number number, MergeForm form, double tolerance) {
  const auto cpu = make_cpu_operators(Number::kFp32);
  const Array cpu_part = cpu->upload(Number::kBf16, kRows, 24, numbers(1));
  const Array cpu_sum = cpu->upload(number, kRows, 24, numbers(2));
  const Array cpu_part_lse = cpu->upload(Number::kFp32, kRows, 3, log_sums(3));
  const Array cpu_sum_lse = cpu->upload(Number::kFp32, kRows, 3, log_sums(4));

  const auto part = as<__nv_bfloat16>(numbers(1));
  auto sum = as<Sum>(numbers(2));
  const auto part_lse = as<float>(log_sums(3));
  auto sum_lse = as<float>(log_sums(4));
  constexpr int kWidth = 4;
  const std::int64_t blocks = (kHeadRowCount + device::kHeadRows - 1) / device::kHeadRows;

  cpu->add_weighted(kHeads, cpu_part, cpu_part_lse, cpu_sum_lse, cpu_sum);
  run(blocks, device::kSumThreads, device::kWeightBytes<float>, [&] {
    device::add_weighted_kernel<__nv_bfloat16, Sum, float, kWidth>(part.data(), part_lse.data(), sum_lse.data(), sum.data(),
                                                                   kHeadRowCount, 8 / kWidth);
  });
  expect_same(sum, cpu->download(cpu_sum), tolerance);

  cpu->merge(kHeads, form, cpu_part, cpu_part_lse, cpu_sum, cpu_sum_lse);
  run(blocks, device::kSumThreads, device::kWeightBytes<float>, [&] {
    device::merge_kernel<__nv_bfloat16, Sum, float, kWidth>(form, part.data(), part_lse.data(), sum.data(), sum_lse.data(),
                                                            kHeadRowCount, 8 / kWidth);
  });
  expect_same(sum, cpu->download(cpu_sum), tolerance);
  expect_same(sum_lse, cpu->download(cpu_sum_lse), 1e-6);
}

TEST(SumsText, MergesPartsLikeTheCpu) {
  check_merge<float>(Number::kFp32, MergeForm::kStable, 1e-6);
  check_merge<float>(Number::kFp32, MergeForm::kThroughExp, 1e-6);
  check_merge<__nv_bfloat16>(Number::kBf16, MergeForm::kStable, std::ldexp(1.0, -8));  // one rounding may fall the other way
}

TEST(SumsText, MergesLogSumsLikeTheCpu) {
  const auto cpu = make_cpu_operators(Number::kFp32);
  const Array cpu_part = cpu->upload(Number::kFp32, kRows, 3, log_sums(3));
  const Array cpu_sum = cpu->upload(Number::kFp32, kRows, 3, log_sums(4));
  cpu->merge_lse(MergeForm::kStable, cpu_part, cpu_sum);
  const auto part = as<float>(log_sums(3));
  auto sum = as<float>(log_sums(4));
  run(1, device::kSumThreads, 0,
      [&] { device::merge_lse_kernel<float>(MergeForm::kStable, part.data(), sum.data(), kHeadRowCount); });
  expect_same(sum, cpu->download(cpu_sum), 1e-6);
}

TEST(SumsText, AddsAndMakesDeltas) {
  const std::vector<double> a = numbers(1);
  const std::vector<double> b = numbers(2);
  const auto part = as<__half>(a);
  auto sum = as<float>(b);
  run(1, device::kSumThreads, 0,
      [&] { device::add_kernel<__half, float, float, 4>(part.data(), sum.data(), static_cast<std::int64_t>(sum.size()) / 4); });
  std::vector<double> expected;
  for (std::size_t i = 0; i < a.size(); ++i) expected.push_back(a[i] + b[i]);
  expect_same(sum, expected, 0);  // multiples of 2^-7 below 4: exact

  std::vector<float> delta(kHeadRowCount);
  const auto dout = as<__half>(b);
  run((kHeadRowCount + 7) / 8, device::kSumThreads, 0,
      [&] { device::row_delta_kernel<__half, __half, float>(part.data(), dout.data(), delta.data(), kHeadRowCount, 8); });
  std::vector<double> products(static_cast<std::size_t>(kHeadRowCount));
  for (std::size_t i = 0; i < a.size(); ++i) products[i / 8] += a[i] * b[i];
  expect_same(delta, products, 0);  // eight products of multiples of 2^-7 below 2: below 32 in steps of 2^-14, exact
}

TEST(MovesText, GathersRowsAndColumns) {
  const std::vector<float> from = as<float>(numbers(1));  // [13][24]
  const std::vector<int> index = {12, -1, 0, 5};
  std::vector<float> rows(4 * 24, 7.0F);
  run(1, device::kMoveThreads, 0,
      [&] { device::gather_rows_kernel<float>(from.data(), kRows, index.data(), rows.data(), 4, 24); });
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const int row = index[i / 24];
    EXPECT_EQ(rows[i], row < 0 ? 0.0F : from[static_cast<std::size_t>(row) * 24 + i % 24]);
  }
  std::vector<float> columns(static_cast<std::size_t>(kRows) * 8);
  run(1, device::kMoveThreads, 0, [&] { device::copy_columns_kernel<float>(from.data() + 8, 24, columns.data(), 8, kRows, 8); });
  std::vector<float> back(from.size());
  run(1, device::kMoveThreads, 0, [&] { device::copy_columns_kernel<float>(columns.data(), 8, back.data() + 8, 24, kRows, 8); });
  std::vector<float> swapped(from.size());
  run(2, device::kMoveThreads, 0, [&] { device::transpose_kernel<float>(from.data(), swapped.data(), kRows, 24); });
  for (std::size_t i = 0; i < from.size(); ++i) {
    const bool inside = i % 24 >= 8 && i % 24 < 16;
    EXPECT_EQ(back[i], inside ? from[i] : 0.0F);
    EXPECT_EQ(swapped[i % 24 * kRows + i / 24], from[i]);
  }
}

TEST(MovesText, ConvertsWithOneRounding) {
  // 1 + 2^-8 + 2^-40 lies just above the middle of two bf16 numbers; by way of float it would lie on it and round to even.
  const std::vector<double> from = {1 + std::ldexp(1.0, -8) + std::ldexp(1.0, -40), 1 + std::ldexp(1.0, -8), -3.5};
  std::vector<__nv_bfloat16> to(3);
  run(1, device::kMoveThreads, 0, [&] { device::convert_kernel<double, __nv_bfloat16>(from.data(), to.data(), 3); });
  EXPECT_EQ(static_cast<float>(to[0]), 1 + std::ldexp(1.0F, -7));
  EXPECT_EQ(static_cast<float>(to[1]), 1.0F);
  EXPECT_EQ(static_cast<float>(to[2]), -3.5F);
  std::vector<__half> filled(5);
  run(1, device::kMoveThreads, 0, [&] { device::fill_kernel<__half>(filled.data(), 4, 0.25); });
  EXPECT_EQ(static_cast<float>(filled[3]), 0.25F);
  EXPECT_EQ(static_cast<float>(filled[4]), 0.0F);
}

}  // namespace
}  // namespace cpfit::kernels
