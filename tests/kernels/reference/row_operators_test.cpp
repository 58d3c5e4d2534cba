// The operators around attention: memory, rows, columns, sums, merges. Small values that a person can follow.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/reference/cpu_operators.h"

namespace cpfit::kernels {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
using Values = std::vector<double>;

class RowOperators : public ::testing::TestWithParam<Number> {
 protected:
  [[nodiscard]] Number sum() const { return GetParam(); }
  Array row_values(std::int64_t rows, std::int64_t heads, const Values& values) {
    return operators_->upload(sum(), rows, heads, values);
  }
  const std::unique_ptr<Operators> operators_ = make_cpu_operators(GetParam());
};
INSTANTIATE_TEST_SUITE_P(Sums, RowOperators, ::testing::Values(Number::kFp64, Number::kFp32),
                         [](const auto& number) { return name_of(number.param); });

TEST_P(RowOperators, MemoryIsZeroAndKeepsWhatIsRoundedOnce) {
  EXPECT_EQ(operators_->sum_number(), sum());
  EXPECT_EQ(operators_->download(operators_->allocate(Number::kBf16, 2, 2)), Values(4, 0.0));
  // 1 + 2^-8 lies between two bf16 numbers, a tie, to even; a hair above rounds up, though float would call it the tie.
  EXPECT_EQ(operators_->download(operators_->upload(Number::kBf16, 1, 2, Values{1 + 0x1p-8, 1 + 0x1p-8 + 0x1p-40})),
            (Values{1, 1 + 0x1p-7}));
  EXPECT_EQ(operators_->download(operators_->upload(Number::kFp16, 1, 2, Values{1 + 0x1p-11, -0x1p-24})), (Values{1, -0x1p-24}));
  EXPECT_EQ(operators_->download(operators_->upload(Number::kFp64, 1, 1, Values{0.1})), Values{0.1});
  EXPECT_EQ(operators_->download(operators_->upload(Number::kFp32, 1, 1, Values{0.1})), Values{double{0.1F}});
  EXPECT_EQ(operators_->download(operators_->upload_int(2, 1, std::vector<std::int32_t>{-7, 2000000000})), (Values{-7, 2e9}));
}

TEST_P(RowOperators, CopyConvertsAndFillRounds) {
  const Array from = operators_->upload(Number::kFp64, 2, 2, Values{1, -2.5, 1 + 0x1p-9, 1e-3});
  const Array to = operators_->allocate(Number::kBf16, 1, 4);
  operators_->copy(from, to);
  EXPECT_EQ(operators_->download(to), (Values{1, -2.5, 1, 0x1.06p-10}));  // 1e-3 = 1.024 * 2^-10, 1.0000011b
  const Array back = operators_->allocate(Number::kFp64, 2, 2);
  operators_->copy(to, back);
  EXPECT_EQ(operators_->download(back), operators_->download(to));
  operators_->fill(back.view().slice(1, 1), 0.1);
  operators_->fill(to, 1 + 0x1p-9);
  EXPECT_EQ(operators_->download(back), (Values{1, -2.5, 0.1, 0.1}));
  EXPECT_EQ(operators_->download(to), Values(4, 1.0));
}

TEST_P(RowOperators, GatherTakesRowsAndZeros) {
  for (const Number number : {Number::kFp64, Number::kFp32, Number::kBf16, Number::kFp16}) {
    const Array from = operators_->upload(number, 3, 2, Values{0, 1, 10, 11, 20, 21});
    const Array index = operators_->upload_int(4, 1, std::vector<std::int32_t>{2, -1, 0, 2});
    const Array to = operators_->allocate(number, 4, 2);
    operators_->fill(to, 5);
    operators_->gather_rows(from, index, to);
    EXPECT_EQ(operators_->download(to), (Values{20, 21, 0, 0, 0, 1, 20, 21}));
  }
}

TEST_P(RowOperators, ColumnsArePackedAndPutBack) {
  const Array wide = operators_->upload(Number::kBf16, 2, 4, Values{0, 1, 2, 3, 10, 11, 12, 13});
  const Array part = operators_->allocate(Number::kBf16, 2, 2);
  operators_->pack_columns(wide, 1, part);
  EXPECT_EQ(operators_->download(part), (Values{1, 2, 11, 12}));
  const Array again = operators_->allocate(Number::kBf16, 2, 4);
  operators_->unpack_columns(part, again, 2);
  EXPECT_EQ(operators_->download(again), (Values{0, 0, 1, 2, 0, 0, 11, 12}));
}

TEST_P(RowOperators, AddRoundsOnceInTheTargetsType) {
  const Array part = operators_->upload(Number::kFp32, 1, 3, Values{1, 0x1p-9, -3});
  const Array total = operators_->upload(Number::kBf16, 1, 3, Values{256, 1, 1});
  operators_->add(part, total);
  EXPECT_EQ(operators_->download(total), (Values{256, 1, -2}));  // 257 is a tie between 256 and 258; 1 + 2^-9 is below half
  operators_->add(operators_->upload(Number::kBf16, 1, 3, Values{3, 1, 1}), total);
  EXPECT_EQ(operators_->download(total), (Values{260, 2, -1}));  // 259: a tie between 258 and 260, to even
}

TEST_P(RowOperators, RowDeltaIsAProductPerHead) {
  const Heads heads{2, 1, 4, 2, 1.0};
  const Array out = operators_->upload(Number::kBf16, 1, 4, Values{1, 2, 3, 4});
  const Array dout = operators_->upload(Number::kBf16, 1, 4, Values{5, 6, 7, 8});
  const Array delta = row_values(1, 2, Values{0, 0});
  operators_->row_delta(heads, out, dout, delta);
  EXPECT_EQ(operators_->download(delta), (Values{5 + 12, 21 + 32}));
}

TEST_P(RowOperators, MergeWeighsByLogSumAndSkipsWhatAttendedToNothing) {
  // One head of two columns; rows: both parts, only the first, only the second, none.
  const Heads heads{1, 1, 2, 2, 1.0};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Array part = operators_->upload(sum(), 4, 2, Values{4, 8, nan, nan, 5, 6, nan, nan});
  const Array part_lse = row_values(4, 1, Values{std::log(3.0), kInfinity, 1.5, nan});
  const Array total = operators_->upload(sum(), 4, 2, Values{8, 4, 1, 2, nan, nan, 0, 0});
  const Array total_lse = row_values(4, 1, Values{0, 2.5, -kInfinity, -kInfinity});
  operators_->merge(heads, MergeForm::kStable, part, part_lse, total, total_lse);
  const Values merged = operators_->download(total), lse = operators_->download(total_lse);
  EXPECT_NEAR(merged[0], 0.25 * 8 + 0.75 * 4, 1e-6);
  EXPECT_NEAR(merged[1], 0.25 * 4 + 0.75 * 8, 1e-6);
  EXPECT_NEAR(lse[0], std::log(4.0), 1e-6);
  EXPECT_EQ((Values{merged.begin() + 2, merged.end()}), (Values{1, 2, 5, 6, 0, 0}));
  EXPECT_EQ((Values{lse.begin() + 1, lse.end()}), (Values{2.5, 1.5, -kInfinity}));
}

TEST_P(RowOperators, MergingLogSumsFirstAndOutputsLaterIsTheSame) {
  const Heads heads{2, 1, 2, 1, 1.0};
  const std::vector<Values> outs = {{1, 2}, {3, 4}, {5, 6}};
  const std::vector<Values> lses = {{0, 0}, {std::log(2.0), -kInfinity}, {0, std::log(3.0)}};
  const Array total_lse = row_values(1, 2, lses[0]);
  operators_->merge_lse(MergeForm::kStable, row_values(1, 2, lses[1]), total_lse);
  operators_->merge_lse(MergeForm::kStable, row_values(1, 2, lses[2]), total_lse);
  const Array out = operators_->allocate(sum(), 1, 2);
  for (std::size_t i = 0; i < 3; ++i) {
    operators_->add_weighted(heads, operators_->upload(sum(), 1, 2, outs[i]), row_values(1, 2, lses[i]), total_lse, out);
  }
  // Head 0: weights 1, 2, 1 of 4: (1 + 6 + 5) / 4. Head 1: weights 1, 0, 3 of 4: (2 + 18) / 4.
  EXPECT_NEAR(operators_->download(out)[0], 3, 1e-6);
  EXPECT_NEAR(operators_->download(out)[1], 5, 1e-6);
  EXPECT_NEAR(operators_->download(total_lse)[0], std::log(4.0), 1e-6);
}

TEST_P(RowOperators, MergingThroughExpOverflowsInTheTypeOfTheSums) {
  const Heads heads{1, 1, 1, 1, 1.0};
  const double large = sum() == Number::kFp32 ? 100 : 800;
  for (const double lse : {1.0, large}) {
    const Array total = operators_->upload(sum(), 1, 1, Values{2}), total_lse = row_values(1, 1, Values{lse});
    operators_->merge(heads, MergeForm::kThroughExp, operators_->upload(sum(), 1, 1, Values{4}), row_values(1, 1, Values{lse}),
                      total, total_lse);
    const double merged = operators_->download(total)[0];
    if (lse == large) {
      EXPECT_FALSE(std::abs(merged - 3) < 0.1);
    } else {
      EXPECT_NEAR(merged, 3, 1e-6);
    }
  }
}

TEST_P(RowOperators, NarrowSumsAreRoundedPerCall) {
  // 256 of weight one, then twice 1 of weight one: in bf16 each addition is lost (a tie, to even); in the wide type it is not.
  const Heads heads{1, 1, 1, 1, 1.0};
  for (const Number number : {Number::kBf16, sum()}) {
    const Array out = operators_->upload(number, 1, 1, Values{256}), lse = row_values(1, 1, Values{0});
    for (int i = 0; i < 2; ++i) operators_->add_weighted(heads, operators_->upload(number, 1, 1, Values{1}), lse, lse, out);
    EXPECT_EQ(operators_->download(out)[0], number == Number::kBf16 ? 256 : 258);
  }
}

TEST_P(RowOperators, EmptyTensorsAreNoSpecialCase) {
  const Array none = operators_->allocate(sum(), 0, 4);
  operators_->fill(none, 1);
  operators_->add(none, none);
  operators_->gather_rows(none, operators_->upload_int(0, 1, {}), none);
  operators_->finish();
  EXPECT_TRUE(operators_->download(none).empty());
}

TEST(RowOperatorsDeathTest, ShapesThatDoNotMatchStopTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto operators = make_cpu_operators(Number::kFp32);
  const Array two = operators->allocate(Number::kFp32, 2, 2), three = operators->allocate(Number::kFp32, 3, 2);
  EXPECT_DEATH(operators->add(two, three), "add: 2 x 2, 3 x 2 expected");
  const Array index = operators->upload_int(2, 1, std::vector<std::int32_t>{0, 3});
  EXPECT_DEATH(operators->gather_rows(three, index, two), "gather_rows: row 3 of 3");
  EXPECT_DEATH((void)make_cpu_operators(Number::kBf16), "sums in bf16");
}

}  // namespace
}  // namespace cpfit::kernels
