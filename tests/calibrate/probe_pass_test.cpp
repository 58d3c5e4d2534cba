// Decorators change nothing of what a pass computes; what they note is whole: lanes in order, bytes counted.
#include <gmock/gmock.h>

#include <algorithm>
#include <mutex>

#include "calibrate/probe/array_pool.h"
#include "calibrate/probe/pass_recorder.h"
#include "kernels/reference/cpu_operators.h"
#include "kernels/transport/in_process.h"
#include "kernels/verify/rank_run.h"

namespace cpfit::probe {
namespace {

using kernels::Array;
using kernels::Number;
using kernels::View;

void clear(const View& view) { std::fill_n(static_cast<unsigned char*>(view.data), view.bytes(), 0); }

TEST(ArrayPool, CountsWhatIsAliveAndUsesItAgain) {
  const auto operators = kernels::make_cpu_operators(Number::kFp32);
  ArrayPool pool(*operators, clear);
  const void* first = nullptr;
  {
    const Array a = pool.allocate(Number::kFp32, 100, 3);  // 1200 bytes: three granules of 512
    first = a.view().data;
    static_cast<float*>(a.view().data)[5] = 7;
    EXPECT_EQ(pool.allocated_bytes(), 1536);
    const Array b = pool.allocate(Number::kFp32, 1, 1);
    EXPECT_EQ(pool.peak_bytes(), 2048);
  }
  EXPECT_EQ(pool.allocated_bytes(), 0);
  EXPECT_EQ(pool.reserved_bytes(), 2048);
  const Array again = pool.allocate(Number::kBf16, 600, 1);
  EXPECT_EQ(again.view().data, first);
  for (const double value : operators->download(again)) EXPECT_EQ(value, 0);
  EXPECT_EQ(pool.reserved_bytes(), 2048);
}

TEST(ArrayPool, ArraysOutliveIt) {
  const auto operators = kernels::make_cpu_operators(Number::kFp32);
  Array kept;
  {
    ArrayPool pool(*operators, clear);
    kept = pool.allocate(Number::kFp32, 10, 1);
  }
  operators->fill(kept, 3);
  EXPECT_EQ(operators->download(kept)[9], 3);
}

TEST(ArrayPool, BuffersAreTheArraysOfThePassThatMessagesTouch) {
  const auto operators = kernels::make_cpu_operators(Number::kFp32);
  ArrayPool pool(*operators, clear);
  const Array shard = pool.allocate(Number::kFp32, 128, 1);
  pool.reset_peak();
  const Array buffer = pool.allocate(Number::kFp32, 256, 1);
  pool.mark_buffer(shard.view().data);
  pool.mark_buffer(buffer.view().slice(128, 1).data);
  pool.mark_buffer(buffer.view().data);
  EXPECT_EQ(pool.buffer_bytes(), 1024);
  EXPECT_EQ(pool.peak_bytes(), 1536) << "the shard was alive before and still is";
}

/// A clock that moves by a second at every look.
class SteppingClock final : public PassClock {
 public:
  void restart() override { seconds_.clear(); }
  std::size_t mark() override {
    seconds_.push_back(now());
    return seconds_.size() - 1;
  }
  [[nodiscard]] double now() const override { return time_++; }
  [[nodiscard]] std::vector<double> seconds() override { return seconds_; }
  [[nodiscard]] bool host_waits() const override { return true; }

 private:
  mutable double time_ = 0;
  std::vector<double> seconds_;
};

kernels::Case ring_case(const std::string& method, std::int32_t cp) {
  kernels::Case one;
  one.name = method;
  one.method = method;
  one.number = Number::kFp32;
  one.cp = cp;
  one.heads = {4, 4, 16, 16, 0.25};
  one.query_tokens = one.key_tokens = 16 * cp;
  return one;
}

struct RecordedRank {
  kernels::AttentionTensors plain, timed;
  PassTimes times;
  std::vector<MeasuredWindow> windows;
  std::int64_t buffer_bytes = 0;
};

std::vector<RecordedRank> record(const kernels::Case& one) {
  std::vector<RecordedRank> ranks(static_cast<std::size_t>(one.cp));
  kernels::run_ranks(one.cp, std::chrono::seconds(30), [&](kernels::InProcessTransport& transport) {
    RecordedRank& rank = ranks[static_cast<std::size_t>(transport.rank())];
    const auto operators = kernels::make_cpu_operators(Number::kFp32);
    rank.plain = kernels::run_rank(one, *operators, transport);
    SteppingClock clock;
    ArrayPool pool(*operators, clear);
    PassRecorder recorder(clock, transport);
    TimedOperators timed_operators(*operators, pool, recorder);
    TimedTransport timed_transport(transport, pool, recorder);
    pool.reset_peak();
    recorder.begin();
    rank.timed = kernels::run_rank(one, timed_operators, timed_transport);
    rank.times = recorder.end();
    rank.windows = recorder.windows();
    rank.buffer_bytes = pool.buffer_bytes();
  });
  return ranks;
}

TEST(PassRecorder, ChangesNothing) {
  for (const char* method : {"te_p2p", "fp32_ring", "all_gather", "a2a", "double_ring", "usp"}) {
    for (const RecordedRank& rank : record(ring_case(method, 4))) {
      EXPECT_EQ(rank.plain.out, rank.timed.out) << method;
      EXPECT_EQ(rank.plain.dq, rank.timed.dq) << method;
      EXPECT_EQ(rank.plain.dk, rank.timed.dk) << method;
      EXPECT_EQ(rank.plain.dv, rank.timed.dv) << method;
    }
  }
}

TEST(PassRecorder, LanesOfARankDoNotOverlapAndAddUp) {
  for (const char* method : {"te_p2p", "fp32_ring", "all_gather", "a2a"}) {
    for (const RecordedRank& rank : record(ring_case(method, 2))) {
      double end = 0;
      double total = 0;
      for (const MeasuredWindow& window : rank.windows) {
        if (window.lane == "send" || window.lane == "receive") continue;
        EXPECT_GE(window.start_seconds, end) << method << " " << window.lane;
        end = window.end_seconds;
        total += window.end_seconds - window.start_seconds;
      }
      EXPECT_LE(end, rank.times.seconds);
      const double parts = rank.times.compute_seconds + rank.times.merge_seconds + rank.times.exposed_seconds;
      EXPECT_LE(parts, rank.times.seconds);
      EXPECT_GE(total, parts) << "a window joins calls that follow each other";
    }
  }
}

TEST(PassRecorder, EveryStepComputesAndAllButTheLastReceive) {
  // Zigzag, causal: no step is without a kernel. Forward and backward in one recording, so each step is there twice.
  for (const RecordedRank& rank : record(ring_case("fp32_ring", 4))) {
    int compute[4] = {};
    int received[4] = {};
    for (const MeasuredWindow& window : rank.windows) {
      ASSERT_LT(window.ring_step, 4);
      if (window.lane == "compute") ++compute[window.ring_step];
      if (window.lane == "receive") ++received[window.ring_step];
    }
    EXPECT_THAT(compute, testing::Each(2));
    // Forward: a KV in steps 0 to 2. Backward: a KV in steps 0 to 2 and a dKV in each.
    EXPECT_THAT(received, testing::ElementsAre(3, 3, 3, 1));
  }
}

TEST(PassRecorder, RingBuffersAreTwoKvAndTwoGradients) {
  // fp32_ring, 4 ranks, 16 tokens each, 4 heads of 16: K and V of a shard are 2 * 16 * 64 * 4 = 8192 bytes. Forward two buffers,
  // backward two for KV and two for dKV: 6 of them. Here the shard itself, which is sent too, is made in the recording: 7.
  for (const RecordedRank& rank : record(ring_case("fp32_ring", 4))) EXPECT_EQ(rank.buffer_bytes, 7 * 8192);
}

}  // namespace
}  // namespace cpfit::probe
