// .npy files: the bytes that NumPy writes, back again, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/verify/npy.h"

namespace cpfit::kernels {
namespace {

using testing::HasSubstr;

TEST(Npy, BytesAreThoseOfNumpy) {
  const std::string bytes = npy_bytes(Number::kFp32, {2, 3}, {0, 1, 2, 3, 4, -0.5});
  // numpy.save of a (2, 3) float32 array: magic, version 1.0, a header that ends at byte 128 with a line feed, 24 bytes of
  // numbers.
  ASSERT_EQ(bytes.size(), 128u + 24u);
  EXPECT_EQ(bytes.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  EXPECT_EQ(static_cast<unsigned char>(bytes[8]) + 256 * static_cast<unsigned char>(bytes[9]), 118);
  EXPECT_THAT(bytes.substr(10, 118), testing::StartsWith("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   "));
  EXPECT_EQ(bytes[127], '\n');
  float last = 0;
  std::memcpy(&last, bytes.data() + 148, 4);
  EXPECT_EQ(last, -0.5F);
  EXPECT_THAT(npy_bytes(Number::kInt32, {4}, {1, 2, 3, 4}), HasSubstr("'shape': (4,), }"));
}

TEST(Npy, EveryTypeComesBack) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::vector<double> values = {0, 1, -2.5, 0.125, -kInfinity, 96};
  for (const Number number : {Number::kFp64, Number::kFp32, Number::kBf16, Number::kFp16}) {
    const Outcome<NpyArray> read = read_npy(npy_bytes(number, {3, 1, 2}, values), "x.npy");
    ASSERT_TRUE(read.ok()) << name_of(number) << to_text(read.problems()[0]);
    EXPECT_EQ(read->shape, (std::vector<std::int64_t>{3, 1, 2}));
    EXPECT_EQ(read->values, values) << name_of(number);
  }
  EXPECT_EQ(read_npy(npy_bytes(Number::kInt32, {2}, {-7, 9}), "x.npy")->values, (std::vector<double>{-7, 9}));
}

TEST(Npy, SixteenBitsAreRoundedToNearestEven) {
  // 1 + 2^-8 lies midway between 1 and 1 + 2^-7 of bf16: to even, 1. 1 + 3 * 2^-8: to 1 + 2^-6.
  const Outcome<NpyArray> read = read_npy(npy_bytes(Number::kBf16, {2}, {1 + 1.0 / 256, 1 + 3.0 / 256}), "x.npy");
  EXPECT_EQ(read->type, "<u2");
  EXPECT_EQ(read->values, (std::vector<double>{1.0, 1 + 1.0 / 64}));
}

TEST(Npy, WhatCannotBeReadIsTold) {
  const std::string good = npy_bytes(Number::kFp64, {2}, {1, 2});
  const auto message = [](const std::string& bytes) {
    const Outcome<NpyArray> read = read_npy(bytes, "got/out.npy");
    return read.ok() ? std::string("accepted") : read.problems()[0].where + ": " + read.problems()[0].message;
  };
  EXPECT_THAT(message("PK zip"), HasSubstr("got/out.npy: this is no .npy file"));
  EXPECT_THAT(message(good.substr(0, 40)), HasSubstr("cut short"));
  EXPECT_THAT(message(good.substr(0, good.size() - 1)), HasSubstr("holds 15 bytes of numbers, its shape [2] needs 16"));
  std::string other = good;
  other.replace(other.find("False"), 5, "True ");
  EXPECT_THAT(message(other), HasSubstr("not in C order"));
  other = good;
  other.replace(other.find("<f8"), 3, ">f8");
  EXPECT_THAT(message(other), HasSubstr("type '>f8' is not one of"));
  other = good;
  other.replace(other.find("(2,)"), 4, "(9e)");
  EXPECT_THAT(message(other), HasSubstr("shape cannot be read"));
  other = good;
  other.replace(other.find("(2,), }        "), 15, "(2999999999,), ");
  EXPECT_THAT(message(other), HasSubstr("needs more"));
}

TEST(Npy, VersionTwoHeadersAreReadToo) {
  const std::string one = npy_bytes(Number::kFp64, {2}, {1, 2});
  std::string two = one.substr(0, 6) + std::string("\x02\x00", 2) + one.substr(8, 2) + std::string(2, '\0') + one.substr(10);
  const Outcome<NpyArray> read = read_npy(two, "x.npy");
  ASSERT_TRUE(read.ok()) << to_text(read.problems()[0]);
  EXPECT_EQ(read->values, (std::vector<double>{1, 2}));
}

}  // namespace
}  // namespace cpfit::kernels
