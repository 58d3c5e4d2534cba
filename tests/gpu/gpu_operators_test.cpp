// Every operator but attention, on the device, against the same operator of the CPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "kernels/cuda/cuda_loopback.h"
#include "kernels/reference/cpu_operators.h"
#include "kernels/reference/fixture_numbers.h"
#include "on_gpu.h"

namespace cpfit::kernels {
namespace {

constexpr std::int64_t kRows = 301;
constexpr Heads kHeads = {6, 2, 32, 40, 0.2};

std::vector<double> log_sums(std::uint32_t seed) {
  std::vector<double> lse = grid_numbers(seed, kRows * kHeads.q, 7);
  for (std::size_t i = seed % 5; i < lse.size(); i += 7) lse[i] = -std::numeric_limits<double>::infinity();
  return lse;
}

using Result = std::vector<std::vector<double>>;

void expect_near(const Result& got, const Result& expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].size(), expected[i].size());
    for (std::size_t j = 0; j < got[i].size(); ++j) {
      if (std::isinf(expected[i][j])) {
        ASSERT_EQ(got[i][j], expected[i][j]) << i << " " << j;
      } else {
        ASSERT_NEAR(got[i][j], expected[i][j], tolerance * std::max(1.0, std::abs(expected[i][j]))) << i << " " << j;
      }
    }
  }
}

/// `work` on both kinds of operators.
void expect_same_work(Number sum, double tolerance, const std::function<Result(Operators&)>& work) {
  const auto gpu = make_cuda_operators(0, sum);
  const auto cpu = make_cpu_operators(sum);
  expect_near(work(*gpu), work(*cpu), tolerance);
}

/// One rounding may fall the other way where device and host contract products differently.
double rounding_of(Number number) {
  return number == Number::kFp64 ? 1e-14 : number == Number::kFp32 ? 1e-6 : number == Number::kFp16 ? 1.0 / 1024 : 1.0 / 128;
}

TEST(GpuOperators, MemoryHoldsWhatItIsGiven) {
  CPFIT_NEEDS_GPU();
  for (const Number number : {Number::kFp64, Number::kFp32, Number::kBf16, Number::kFp16}) {
    expect_same_work(Number::kFp32, 0, [&](Operators& on) {
      const Array a = on.upload(number, kRows, 7, grid_numbers(1, kRows * 7, 10));
      const Array zeros = on.allocate(number, 3, 5);
      on.fill(a.view().slice(5, 2), -0.75);
      const Array wide = on.allocate(Number::kFp32, kRows, 7);
      on.copy(a, wide);
      return Result{on.download(a), on.download(zeros), on.download(wide)};
    });
  }
  expect_same_work(Number::kFp32, 0, [](Operators& on) {
    return Result{on.download(on.upload_int(2, 2, std::vector<std::int32_t>{1, -2, 3, 1 << 30}))};
  });
}

TEST(GpuOperators, RowsAndColumnsMove) {
  CPFIT_NEEDS_GPU();
  for (const std::int64_t columns : {3, 8, 24}) {  // of words of 2, 16 and 16 bytes
    expect_same_work(Number::kFp32, 0, [&](Operators& on) {
      const Array from = on.upload(Number::kBf16, kRows, 24, grid_numbers(2, kRows * 24, 7));
      std::vector<std::int32_t> index;
      for (std::int32_t i = 0; i < 100; ++i) index.push_back(i % 9 == 4 ? -1 : (i * 37) % static_cast<std::int32_t>(kRows));
      const Array rows = on.allocate(Number::kBf16, 100, 24);
      on.gather_rows(from, on.upload_int(100, 1, index), rows);
      const Array packed = on.allocate(Number::kBf16, kRows, columns);
      on.pack_columns(from, 24 - columns, packed);
      const Array back = on.allocate(Number::kBf16, kRows, 24);
      on.unpack_columns(packed, back, 0);
      return Result{on.download(rows), on.download(packed), on.download(back)};
    });
  }
}

TEST(GpuOperators, PartsAreSummed) {
  CPFIT_NEEDS_GPU();
  struct Pair {
    Number part, sum, lse;
  };
  for (const Pair pair : {Pair{Number::kBf16, Number::kFp32, Number::kFp32}, Pair{Number::kBf16, Number::kBf16, Number::kFp32},
                          Pair{Number::kFp16, Number::kFp16, Number::kFp32}, Pair{Number::kFp32, Number::kFp32, Number::kFp32},
                          Pair{Number::kFp32, Number::kBf16, Number::kFp32}, Pair{Number::kFp64, Number::kFp64, Number::kFp64}}) {
    for (const MergeForm form : {MergeForm::kStable, MergeForm::kThroughExp}) {
      expect_same_work(pair.lse, rounding_of(pair.sum), [&](Operators& on) {
        const std::int64_t columns = std::int64_t{kHeads.q} * kHeads.v_dim;
        const Array part = on.upload(pair.part, kRows, columns, grid_numbers(3, kRows * columns, 7));
        const Array sum = on.upload(pair.sum, kRows, columns, grid_numbers(4, kRows * columns, 7));
        const Array part_lse = on.upload(pair.lse, kRows, kHeads.q, log_sums(5));
        const Array sum_lse = on.upload(pair.lse, kRows, kHeads.q, log_sums(6));
        Result result;
        on.merge(kHeads, form, part, part_lse, sum, sum_lse);
        result.push_back(on.download(sum));
        result.push_back(on.download(sum_lse));
        on.merge_lse(form, part_lse, sum_lse);
        on.add_weighted(kHeads, part, part_lse, sum_lse, sum);
        result.push_back(on.download(sum));
        result.push_back(on.download(sum_lse));
        on.add(part, sum);
        const Array delta = on.allocate(pair.lse, kRows, kHeads.q);
        on.row_delta(kHeads, part, part, delta);  // 40 squares of multiples of 2^-7 below 2: 22 bits, exact in fp32
        result.push_back(on.download(sum));
        result.push_back(on.download(delta));
        return result;
      });
    }
  }
}

TEST(GpuOperators, LoopbackDeliversBesideTheKernels) {
  CPFIT_NEEDS_GPU();
  const auto on = make_cuda_operators(0, Number::kFp32);
  const auto transport = make_cuda_loopback(*on, 4);
  EXPECT_EQ(transport->size(), 4);
  const Array a = on->upload(Number::kFp32, 1000, 64, grid_numbers(7, 64000, 7));
  const Array b = on->allocate(Number::kFp32, 1000, 64);
  for (int round = 0; round < 20; ++round) {
    on->fill(a, round);  // before the batch: it must carry this
    const Message batch[] = {send_to(1, a), receive_from(3, b)};
    const Ticket ticket = transport->start(batch);
    transport->wait(ticket);
    on->fill(a, -1);  // after the wait: it must not
    const std::vector<double> got = on->download(b);
    ASSERT_THAT(got, testing::Each(round));
  }
  transport->barrier();
}

TEST(GpuOperators, AWatchEndsAWait) {
  CPFIT_NEEDS_GPU();
  const auto on = make_cuda_operators(0, Number::kFp32);
  auto owner = std::make_shared<int>(0);
  on->watch(owner, [] { throw std::runtime_error("a peer died"); });
  EXPECT_THROW(on->finish(), std::runtime_error);
  owner.reset();
  EXPECT_NO_THROW(on->finish());
}

TEST(WithoutAGpu, TheReasonIsToldAndNothingElseHappens) {
  const std::string reason = why_no_cuda();
  if (reason.empty()) GTEST_SKIP() << "there is a GPU here";
  try {
    (void)make_cuda_operators(0, Number::kFp32);
    FAIL() << "operators were made without a device";
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(std::string(error.what()), reason);
  }
}

}  // namespace
}  // namespace cpfit::kernels
