// The emulator itself: it must see the mistakes that it is there for, each planted here in a few lines, and the instructions it
// carries out must be those of the PTX ISA.
#include "engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "device_twin.h"

namespace {

using testing::HasSubstr;
namespace ptx = cpfit::kernels::ptx;

simt::Launch launch_of(int threads, std::size_t shared_bytes, bool reversed = false) {
  return {1, 1, threads, shared_bytes, reversed};
}
int* shared_ints() { return reinterpret_cast<int*>(ptx::dynamic_shared()); }

TEST(Emulator, RunsEveryThreadOfEveryBlockOnce) {
  std::vector<int> count(6 * 64);
  EXPECT_EQ(simt::run({3, 2, 64, 0, false},
                      [&] { ++count[static_cast<std::size_t>((3 * ptx::block_y() + ptx::block_x()) * 64 + ptx::thread_x())]; }),
            "");
  EXPECT_EQ(count, std::vector<int>(6 * 64, 1));
}

/// Thread i tells its neighbour i; with the barrier every thread reads what it was told, in both orders.
std::vector<int> neighbours(bool with_barrier, bool reversed) {
  std::vector<int> read(64);
  EXPECT_EQ(simt::run(launch_of(64, 64 * sizeof(int), reversed),
                      [&] {
                        const int i = ptx::thread_x();
                        shared_ints()[i] = i;
                        if (with_barrier) ptx::sync_block();
                        read[static_cast<std::size_t>(i)] = shared_ints()[(i + 1) % 64];
                      }),
            "");
  return read;
}

TEST(Emulator, AMissingBarrierShowsInTheOrderOfThreads) {
  EXPECT_EQ(neighbours(true, false), neighbours(true, true));
  EXPECT_NE(neighbours(false, false), neighbours(false, true));
  EXPECT_EQ(neighbours(true, false)[63], 0);
}

/// What thread 0 finds at a place that it copies to.
float copied(bool with_wait) {
  alignas(16) const float source[4] = {1, 2, 3, 4};
  float found = 0;
  EXPECT_EQ(simt::run(launch_of(32, 512),
                      [&] {
                        const std::uint32_t to = ptx::shared_address(ptx::dynamic_shared() + 16 * ptx::thread_x());
                        ptx::copy_16_async(to, source, true);
                        ptx::commit_copies();
                        if (with_wait) ptx::wait_copies<0>();
                        if (ptx::thread_x() == 0) std::memcpy(&found, ptx::dynamic_shared() + 8, sizeof found);
                      }),
            "");
  return found;
}

TEST(Emulator, ACopyThatWasNotWaitedForIsNotThere) {
  EXPECT_EQ(copied(true), 3.0F);
  EXPECT_TRUE(std::isnan(copied(false)));
}

TEST(Emulator, OnlyTheOldestGroupsAreWaitedFor) {
  alignas(16) const float source[4] = {1, 2, 3, 4};
  float found[2] = {};
  EXPECT_EQ(simt::run(launch_of(32, 1024),
                      [&] {
                        for (int i = 0; i < 2; ++i) {
                          unsigned char* const to = ptx::dynamic_shared() + 32 * ptx::thread_x() + 16 * i;
                          ptx::copy_16_async(ptx::shared_address(to), source, i == 0);
                          ptx::commit_copies();
                        }
                        ptx::wait_copies<1>();
                        if (ptx::thread_x() == 0) {
                          for (int i = 0; i < 2; ++i) std::memcpy(&found[i], ptx::dynamic_shared() + 16 * i, sizeof(float));
                        }
                      }),
            "");
  EXPECT_EQ(found[0], 1.0F);
  EXPECT_TRUE(std::isnan(found[1]));
}

TEST(Emulator, ReportsPlacesOutsideOfSharedMemory) {
  alignas(16) const float source[4] = {};
  EXPECT_THAT(simt::run(launch_of(32, 496),
                        [&] {
                          ptx::copy_16_async(
                              ptx::shared_address(ptx::dynamic_shared()) + 16U * static_cast<unsigned>(ptx::thread_x()), source,
                              true);
                        }),
              HasSubstr("thread 31 of block (0, 0): shared memory at byte 496 of 496"));
}

TEST(Emulator, ReportsMisalignedRows) {
  EXPECT_THAT(simt::run(launch_of(32, 1024),
                        [&] {
                          std::uint32_t to[4];
                          ptx::load_matrices(to, ptx::shared_address(ptx::dynamic_shared()) + 8);
                        }),
              HasSubstr("not aligned to 16"));
}

TEST(Emulator, ReportsLanesThatMeetAtDifferentInstructions) {
  EXPECT_THAT(simt::run(launch_of(32, 0),
                        [&] {
                          if (ptx::thread_x() < 16) {
                            ptx::sync_warp();
                          } else {
                            (void)ptx::shuffle_xor(1, 1);
                          }
                        }),
              HasSubstr("sync_warp and at shuffle_xor"));
}

TEST(Emulator, ReportsThreadsThatWaitForEver) {
  EXPECT_THAT(simt::run(launch_of(64, 0),
                        [&] {
                          if (ptx::thread_x() != 40) ptx::sync_block();
                        }),
              HasSubstr("wait for ever: thread 0 at the block's barrier"));
}

// Fragments, by the PTX ISA's own words: element (row, column) of A, B and C in lane and register.

/// a b by one instruction, a [16][16], b [16][8], elements 1 at one place of a and of b: c is 1 at (row, column) alone.
TEST(Emulator, MultipliesFragmentsAsTheIsaSays) {
  for (const auto [row, depth, column] :
       {std::array{0, 0, 0}, std::array{3, 9, 5}, std::array{12, 6, 7}, std::array{15, 15, 1}}) {
    float c[16][8];
    EXPECT_EQ(simt::run(launch_of(32, 0),
                        [&, row = row, depth = depth, column = column] {
                          // groupID = lane >> 2, threadID_in_group = lane % 4.
                          const int group = ptx::thread_x() >> 2;
                          const int in_group = ptx::thread_x() % 4;
                          const std::uint32_t one = 0x3F80U;  // in bf16
                          std::uint32_t a[4] = {};
                          std::uint32_t b[2] = {};
                          for (int i = 0; i < 8; ++i) {
                            // A: row = groupID for a0 a1 a4 a5, groupID + 8 for a2 a3 a6 a7;
                            // column = 2 threadID_in_group + (i & 1) for i < 4, that + 8 for i >= 4.
                            const int a_row = (i < 2 || (i >= 4 && i < 6)) ? group : group + 8;
                            const int a_column = 2 * in_group + (i & 1) + (i >= 4 ? 8 : 0);
                            if (a_row == row && a_column == depth) a[i / 2] |= one << (16 * (i & 1));
                          }
                          for (int i = 0; i < 4; ++i) {
                            // B: row = 2 threadID_in_group + (i & 1) for i < 2, that + 8 for i >= 2; column = groupID.
                            const int b_row = 2 * in_group + (i & 1) + (i >= 2 ? 8 : 0);
                            if (b_row == depth && group == column) b[i / 2] |= one << (16 * (i & 1));
                          }
                          float sums[4] = {};
                          ptx::multiply_add<__nv_bfloat16>(sums, a, b[0], b[1]);
                          for (int i = 0; i < 4; ++i) {
                            // C: row = groupID for c0 c1, groupID + 8 for c2 c3; column = 2 threadID_in_group + (i & 1).
                            c[i < 2 ? group : group + 8][2 * in_group + (i & 1)] = sums[i];
                          }
                        }),
              "");
    for (int i = 0; i < 16; ++i) {
      for (int j = 0; j < 8; ++j) EXPECT_EQ(c[i][j], i == row && j == column ? 1.0F : 0.0F) << i << " " << j;
    }
  }
}

TEST(Emulator, LoadsMatricesAsTheIsaSays) {
  // Element (r, c) of matrix m is 100 m + 8 r + c; its rows lie 16 bytes apart.
  std::uint32_t plain[32][4];
  std::uint32_t transposed[32][4];
  EXPECT_EQ(simt::run(launch_of(32, 512),
                      [&] {
                        const int lane = ptx::thread_x();
                        std::uint16_t row[8];
                        for (int c = 0; c < 8; ++c) row[c] = static_cast<std::uint16_t>(100 * (lane / 8) + 8 * (lane % 8) + c);
                        std::memcpy(ptx::dynamic_shared() + 16 * lane, row, sizeof row);
                        ptx::sync_warp();
                        const std::uint32_t place = ptx::shared_address(ptx::dynamic_shared() + 16 * lane);
                        ptx::load_matrices(plain[lane], place);
                        ptx::load_matrices_transposed(transposed[lane], place);
                      }),
            "");
  // Thread 0 holds the first two elements of row 0, thread 1 the next two, thread 4 begins row 1.
  EXPECT_EQ(plain[0][0], 0U | 1U << 16);
  EXPECT_EQ(plain[1][0], 2U | 3U << 16);
  EXPECT_EQ(plain[4][3], 308U | 309U << 16);
  EXPECT_EQ(transposed[0][0], 0U | 8U << 16);
  EXPECT_EQ(transposed[1][2], 216U | 224U << 16);
  EXPECT_EQ(transposed[31][1], (100U + 48 + 7) | (100U + 56 + 7) << 16);
}

}  // namespace
