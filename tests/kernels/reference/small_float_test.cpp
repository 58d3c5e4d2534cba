// Every one of the 65536 patterns of both 16-bit types, and every place between two neighbours.
#include "kernels/reference/small_float.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace cpfit::kernels {
namespace {

struct SixteenBits {
  const char* name;
  std::uint16_t (*of)(float);
  float (*value)(std::uint16_t);
  float (*rounded)(float);
  std::uint16_t infinity;
};
constexpr SixteenBits kTypes[] = {{"bf16", bf16_of, float_of_bf16, rounded_to_bf16, 0x7f80},
                                  {"fp16", fp16_of, float_of_fp16, rounded_to_fp16, 0x7c00}};

TEST(SmallFloat, EveryPatternSurvivesTheWayToFloatAndBack) {
  for (const SixteenBits& type : kTypes) {
    for (std::uint32_t bits = 0; bits < 65536; ++bits) {
      const auto pattern = static_cast<std::uint16_t>(bits);
      const float value = type.value(pattern);
      if ((bits & 0x7fffU) > type.infinity) {
        ASSERT_TRUE(std::isnan(value) && std::isnan(type.value(type.of(value))) && std::isnan(type.rounded(value))) << bits;
        continue;
      }
      ASSERT_EQ(type.of(value), pattern) << type.name;
      ASSERT_EQ(std::bit_cast<std::uint32_t>(type.rounded(value)), std::bit_cast<std::uint32_t>(value))
          << type.name << " " << bits;
    }
  }
}

TEST(SmallFloat, BetweenNeighboursTheNearestWinsAndTiesGoToTheEvenPattern) {
  for (const SixteenBits& type : kTypes) {
    for (std::uint16_t low = 0; low < type.infinity; ++low) {
      const auto high = static_cast<std::uint16_t>(low + 1);
      // Behind the largest number stands the power of two that would follow it, read as infinity.
      const double from = type.value(low);
      const double to = high == type.infinity ? 2 * from - type.value(static_cast<std::uint16_t>(low - 1)) : type.value(high);
      const double middle = (from + to) / 2;  // exact: both types leave float bits to spare
      const std::uint16_t even = low % 2 == 0 ? low : high;
      const auto check = [&](double x, std::uint16_t expected) {
        for (const double sign : {1.0, -1.0}) {
          const auto signed_pattern = static_cast<std::uint16_t>(expected | (sign < 0 ? 0x8000U : 0U));
          ASSERT_EQ(type.of(odd_float_of(sign * x)), signed_pattern) << type.name << " " << x;
          const auto single = static_cast<float>(sign * x);
          if (double{single} == sign * x) {
            ASSERT_EQ(type.of(type.rounded(single)), signed_pattern) << type.name << " " << x;
          }
        }
      };
      check(middle, even);
      check(std::nextafter(static_cast<float>(middle), 0.0F), low);
      check(std::nextafter(static_cast<float>(middle), std::numeric_limits<float>::infinity()), high);
      // So near to the middle that float cannot tell: rounding twice would make a tie of it.
      check(middle * (1 + 0x1p-45), high);
      check(middle * (1 - 0x1p-45), low);
    }
  }
}

TEST(SmallFloat, KnownValues) {
  EXPECT_EQ(bf16_of(1.0F), 0x3f80);
  EXPECT_EQ(bf16_of(-2.5F), 0xc020);
  EXPECT_EQ(float_of_bf16(0x4049), 3.140625F);  // pi: 1.1001001b * 2
  EXPECT_EQ(bf16_of(3.14159265F), 0x4049);
  EXPECT_EQ(bf16_of(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(fp16_of(1.0F), 0x3c00);
  EXPECT_EQ(fp16_of(-2.0F), 0xc000);
  EXPECT_EQ(fp16_of(65504.0F), 0x7bff);
  EXPECT_EQ(fp16_of(65519.9F), 0x7bff);
  EXPECT_EQ(fp16_of(65520.0F), 0x7c00);
  EXPECT_EQ(fp16_of(0.333251953125F), 0x3555);  // 1365 / 4096
  EXPECT_EQ(float_of_fp16(0x0001), 0x1p-24F);
  EXPECT_EQ(fp16_of(0x1p-25F), 0x0000);  // half of the smallest subnormal: a tie, to even
  EXPECT_EQ(fp16_of(0x1.8p-25F), 0x0001);
  EXPECT_EQ(fp16_of(-0.0F), 0x8000);
  EXPECT_EQ(odd_float_of(1e300), std::numeric_limits<float>::max());
  EXPECT_EQ(fp16_of(odd_float_of(1e300)), 0x7c00);
}

}  // namespace
}  // namespace cpfit::kernels
