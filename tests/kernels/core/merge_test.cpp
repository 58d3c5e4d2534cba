// The rules of merging by log-sum-exp: exact where a part is nothing, associative, and sound where exp overflows.
#include "model/attention/merge.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace cpfit::attention {
namespace {

template <class Real>
class Merge : public ::testing::Test {};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Merge, Reals);

TYPED_TEST(Merge, APartThatAttendedToNothingChangesNothing) {
  using Real = TypeParam;
  constexpr Real kInfinity = std::numeric_limits<Real>::infinity();
  const Real lse = Real(1.25);
  for (const Real nothing : {-kInfinity, kInfinity, std::numeric_limits<Real>::quiet_NaN()}) {
    const MergeWeights<Real> second = merge_weights(lse, nothing);
    EXPECT_EQ(second.lse, lse);
    EXPECT_EQ(second.first, 1);
    EXPECT_EQ(second.second, 0);
    const MergeWeights<Real> first = merge_weights(nothing, lse);
    EXPECT_EQ(first.lse, lse);
    EXPECT_EQ(first.first, 0);
    EXPECT_EQ(first.second, 1);
    for (const Real other : {-kInfinity, kInfinity, std::numeric_limits<Real>::quiet_NaN()}) {
      const MergeWeights<Real> both = merge_weights(nothing, other);
      EXPECT_EQ(both.lse, -kInfinity);
      EXPECT_EQ(both.first, 0);
      EXPECT_EQ(both.second, 0);
      EXPECT_EQ(part_weight(nothing, other), 0);
    }
    EXPECT_EQ(part_weight(nothing, lse), 0);
    EXPECT_EQ(part_weight(lse, nothing), 0);
    // The planted fault breaks the overflow alone, not this rule.
    EXPECT_EQ(merge_weights_through_exp(lse, nothing).lse, lse);
  }
}

TYPED_TEST(Merge, WeightsOfPlainNumbers) {
  using Real = TypeParam;
  // ln 1 and ln 3: weights 1/4 and 3/4, together ln 4.
  const MergeWeights<Real> weights = merge_weights(Real(0), std::log(Real(3)));
  constexpr Real kUlps = 4 * std::numeric_limits<Real>::epsilon();
  EXPECT_NEAR(weights.lse, std::log(Real(4)), kUlps);
  EXPECT_NEAR(weights.first, Real(0.25), kUlps);
  EXPECT_NEAR(weights.second, Real(0.75), kUlps);
}

TYPED_TEST(Merge, IsAssociativeAndCommutativeToRounding) {
  using Real = TypeParam;
  const Real values[] = {Real(-40), Real(-3.5), Real(0), Real(0.125), Real(7), Real(60)};
  for (const Real a : values) {
    for (const Real b : values) {
      EXPECT_EQ(merge_weights(a, b).lse, merge_weights(b, a).lse);
      EXPECT_EQ(merge_weights(a, b).first, merge_weights(b, a).second);
      for (const Real c : values) {
        const Real left = merge_weights(merge_weights(a, b).lse, c).lse;
        const Real right = merge_weights(a, merge_weights(b, c).lse).lse;
        EXPECT_NEAR(left, right, 4 * std::numeric_limits<Real>::epsilon() * (1 + std::abs(left)));
      }
    }
  }
}

TYPED_TEST(Merge, LogSumsBeyondTheRangeOfExp) {
  using Real = TypeParam;
  const Real large = sizeof(Real) == 4 ? Real(100) : Real(800);  // exp overflows above 88.7 and 709.8
  const MergeWeights<Real> weights = merge_weights(large, large);
  EXPECT_NEAR(weights.lse, large + std::log(Real(2)), 4 * std::numeric_limits<Real>::epsilon() * large);
  EXPECT_EQ(weights.first, Real(0.5));
  const MergeWeights<Real> low = merge_weights(-large, -large);
  EXPECT_EQ(low.second, Real(0.5));
  const MergeWeights<Real> apart = merge_weights(large, large - std::log(Real(3)));
  EXPECT_NEAR(apart.first + apart.second, Real(1), std::numeric_limits<Real>::epsilon());
  // What the planted fault does there: everything is lost, in the type of the sums and not only in a wider one.
  EXPECT_FALSE(attended_to_something(merge_weights_through_exp(large, large).lse));
  EXPECT_NEAR(merge_weights_through_exp(Real(0), std::log(Real(3))).second, Real(0.75), 1e-6);
}

TYPED_TEST(Merge, WeightZeroKeepsWhatAPartHoldsOut) {
  using Real = TypeParam;
  EXPECT_EQ(weighted(Real(0), std::numeric_limits<Real>::quiet_NaN()), 0);
  EXPECT_EQ(weighted(Real(0), std::numeric_limits<Real>::infinity()), 0);
  EXPECT_EQ(weighted(Real(0.5), Real(3)), Real(1.5));
}

}  // namespace
}  // namespace cpfit::attention
