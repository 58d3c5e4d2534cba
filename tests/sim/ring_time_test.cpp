// The recurrences of the ring, against hand-computed schedules.
#include "sim/screen/ring_time.h"

#include <gtest/gtest.h>

#include <array>

namespace cpfit {
namespace {

TEST(RingTime, PrefetchingHidesABurstThatASumOfMaximaExposes) {
  // c = 10,1,1,10 and m = 5: message k arrives at k*5, step k starts at max(previous end, 5k). By hand: step 0 ends 10,
  // step 1 (arrived 5) 11, step 2 (arrived 10) 12, step 3 (arrived 15) starts 15, ends 25.
  const std::array<double, 4> c{10, 1, 1, 10};
  EXPECT_DOUBLE_EQ(ring_prefetching(c, 5).value(), 25.0);
  // Two slots: message k+1 starts with step k. max(10,5) + max(1,5) + max(1,5) + 10 = 30.
  EXPECT_DOUBLE_EQ(ring_two_slots(c, 5).value(), 30.0);
}

TEST(RingTime, MessagesShorterThanStepsAreFree) {
  const std::array<double, 4> c{3, 3, 3, 3};
  EXPECT_DOUBLE_EQ(ring_prefetching(c, 2).value(), 12.0);
  EXPECT_DOUBLE_EQ(ring_two_slots(c, 2).value(), 12.0);
  EXPECT_DOUBLE_EQ(ring_waiting_backward(c, 1, 2, 1).value(), 12.0);
}

TEST(RingTime, LongMessagesSetThePace) {
  // Every message 10, every step 3, r = 4: the last KV arrives at 30, then one step: 33.
  const std::array<double, 4> c{3, 3, 3, 3};
  EXPECT_DOUBLE_EQ(ring_prefetching(c, 10).value(), 33.0);
  EXPECT_DOUBLE_EQ(ring_two_slots(c, 10).value(), 33.0);
  // Backward: first message 10 (KV), two of 20 (KV + dKV), the last of 10 beside the diagonal: 10 + 20 + 20 + 10 = 60.
  EXPECT_DOUBLE_EQ(ring_waiting_backward(c, 10, 20, 10).value(), 60.0);
}

TEST(RingTime, LowerBoundsHold) {
  // No schedule is below all compute, nor below all messages plus the last step.
  for (const double m : {0.0, 0.5, 1.0, 2.0, 7.0}) {
    const std::array<double, 5> c{2, 1, 1, 1, 4};
    const double bound = std::max(9.0, 4 * m + c.back());
    EXPECT_GE(ring_prefetching(c, m).value(), bound);
    EXPECT_GE(ring_two_slots(c, m).value(), bound);
    EXPECT_GE(ring_two_slots(c, m).value(), ring_prefetching(c, m).value());
  }
}

TEST(RingTime, AGatherHidesBehindTheOwnBlockOnly) {
  const std::array<double, 3> c{4, 1, 1};
  EXPECT_DOUBLE_EQ(gather_behind_first_step(c, 3).value(), 6.0);
  EXPECT_DOUBLE_EQ(gather_behind_first_step(c, 9).value(), 11.0);
}

}  // namespace
}  // namespace cpfit
