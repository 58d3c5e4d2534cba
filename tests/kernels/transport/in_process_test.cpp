// Ranks as threads: messages find their receivers in order, and a rank that fails, dies or dawdles ends all ranks with a message.
#include "kernels/transport/in_process.h"

#include <gmock/gmock.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "kernels/reference/cpu_operators.h"
#include "kernels/transport/loopback.h"
#include "model/quantity/problem.h"

namespace cpfit::kernels {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;

constexpr milliseconds kLong{60'000};
constexpr milliseconds kShort{100};

View view_of(std::vector<double>& values) { return {values.data(), Number::kFp64, static_cast<std::int64_t>(values.size()), 1}; }

/// What run_ranks throws; empty: nothing.
std::string failure_of(std::int32_t ranks, milliseconds timeout, const std::function<void(InProcessTransport&)>& work) {
  try {
    run_ranks(ranks, timeout, work);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(InProcess, TheIthSendMeetsTheIthReceiveWhateverTheOrderOfWaits) {
  run_ranks(2, kLong, [](Transport& transport) {
    const std::int32_t peer = 1 - transport.rank();
    std::vector<double> sent[2] = {{1.0 + 10 * transport.rank()}, {2.0 + 10 * transport.rank(), 3.0}};
    std::vector<double> got[2] = {{0.0}, {0.0, 0.0}};
    Ticket ticket[2];
    for (int i = 0; i < 2; ++i) {
      const Message batch[] = {send_to(peer, view_of(sent[i])), receive_from(peer, view_of(got[i]))};
      ticket[i] = transport.start(batch);
    }
    transport.wait(ticket[1]);
    transport.wait(ticket[0]);
    transport.wait(Ticket{});
    EXPECT_EQ(got[0], (std::vector<double>{1.0 + 10 * peer}));
    EXPECT_EQ(got[1], (std::vector<double>{2.0 + 10 * peer, 3.0}));
  });
}

TEST(InProcess, CollectivesOverSomeOfTheRanks) {
  run_ranks(4, kLong, [](Transport& transport) {
    const std::unique_ptr<Operators> operators = make_cpu_operators(Number::kFp64);
    const std::int32_t rank = transport.rank();
    const std::vector<std::int32_t> group = rank % 2 == 0 ? std::vector<std::int32_t>{0, 2} : std::vector<std::int32_t>{1, 3};
    const Array own = operators->upload(Number::kFp64, 1, 1, std::vector<double>{1.0 + rank});
    const Array all = operators->allocate(Number::kFp64, 2, 1);
    transport.wait(transport.start_all_gather(group, own, all));
    EXPECT_EQ(operators->download(all), (std::vector<double>{1.0 + group[0], 1.0 + group[1]}));
    // Rank r sends r to the first of its group and 10 r to the second; then both add what they have.
    const Array two = operators->upload(Number::kFp64, 2, 1, std::vector<double>{1.0 * rank, 10.0 * rank});
    const Array scattered = operators->allocate(Number::kFp64, 1, 1);
    transport.reduce_scatter(*operators, group, two, scattered);
    const double factor = rank == group[0] ? 1 : 10;
    EXPECT_EQ(operators->download(scattered), (std::vector<double>{factor * (group[0] + group[1])}));
    transport.all_reduce(*operators, group, scattered);
    EXPECT_EQ(operators->download(scattered), (std::vector<double>{11.0 * (group[0] + group[1])}));
  });
}

TEST(InProcess, ABarrierHoldsEveryRank) {
  std::atomic<int> before{0};
  run_ranks(4, kLong, [&](Transport& transport) {
    for (int round = 1; round <= 3; ++round) {
      ++before;
      transport.barrier();
      EXPECT_GE(before.load(), 4 * round);
      transport.barrier();
    }
  });
}

TEST(InProcess, ARankThatThrowsEndsTheOthersWithItsMessage) {
  std::atomic<int> told{0};
  const std::string failure = failure_of(3, kLong, [&](Transport& transport) {
    if (transport.rank() == 1) throw Error("the disk is full");
    std::vector<double> got(1);
    const Message batch[] = {receive_from(1, view_of(got))};
    try {
      transport.wait(transport.start(batch));
    } catch (const Error& error) {
      told += std::string(error.what()).find("rank 1 failed: the disk is full") != std::string::npos ? 1 : 0;
      throw;
    }
  });
  EXPECT_EQ(failure, "rank 1 failed: the disk is full");
  EXPECT_EQ(told, 2);
}

TEST(InProcess, ASlowRankEndsInAnErrorOnEveryRank) {
  std::atomic<int> ended{0};
  const std::string failure = failure_of(2, kShort, [&](Transport& transport) {
    std::vector<double> value(1);
    if (transport.rank() == 1) std::this_thread::sleep_for(5 * kShort);
    const std::int32_t peer = 1 - transport.rank();
    const Message batch[] = {send_to(peer, view_of(value)), receive_from(peer, view_of(value))};
    try {
      transport.wait(transport.start(batch));
    } catch (const Error&) {
      ++ended;
      throw;
    }
  });
  EXPECT_THAT(failure, AllOf(HasSubstr("rank 0 waited 0.1 s for message 0 from rank 1"), HasSubstr("since ")));
  EXPECT_EQ(ended, 2);  // the slow one is refused when it comes
}

TEST(InProcess, ARankThatLeavesIsNoticedAtOnce) {
  const std::string failure = failure_of(2, kLong, [](Transport& transport) {
    if (transport.rank() == 1) return;
    std::vector<double> got(1);
    const Message batch[] = {receive_from(1, view_of(got))};
    transport.wait(transport.start(batch));
  });
  EXPECT_THAT(failure, HasSubstr("rank 0 waits for message 0 from rank 1, which has ended"));
}

TEST(InProcess, SizesMustAgree) {
  const std::string failure = failure_of(2, kLong, [](Transport& transport) {
    std::vector<double> value(transport.rank() == 0 ? 2 : 3);
    const Message send[] = {send_to(1, view_of(value))};
    const Message receive[] = {receive_from(0, view_of(value))};
    transport.wait(transport.rank() == 0 ? transport.start(send) : transport.start(receive));
  });
  EXPECT_THAT(failure, HasSubstr("rank 1 expects 24 bytes of message 0 from rank 0, which sent 16"));
}

TEST(InProcess, ABarrierThatARankNeverReachesEnds) {
  const std::string failure = failure_of(3, kShort, [](Transport& transport) {
    if (transport.rank() != 2) transport.barrier();
  });
  EXPECT_THAT(failure, HasSubstr("at a barrier"));
}

TEST(InProcess, AfterAFailureTheTransportOnlyRefuses) {
  int refused = 0;
  (void)failure_of(1, kShort, [&](Transport& transport) {
    std::vector<double> got(1);
    const Message receive[] = {receive_from(0, view_of(got))};
    const Message send[] = {send_to(0, view_of(got))};
    for (const auto& use : std::vector<std::function<void()>>{[&] { transport.wait(transport.start(receive)); },
                                                              [&] { transport.start(send); }, [&] { transport.barrier(); }}) {
      try {
        use();
      } catch (const Error&) {
        ++refused;
      }
    }
  });
  EXPECT_EQ(refused, 3);
}

TEST(InProcess, MemoryElsewhereIsReachedThroughItsOwnCopies) {
  std::atomic<int> copies{0};
  std::atomic<int> settled{0};
  run_ranks(2, kLong, [&](InProcessTransport& transport) {
    transport.reach_memory_with({[&] { ++settled; },
                                 [&](void* to, const void* from, std::int64_t bytes) {
                                   ++copies;
                                   std::copy_n(static_cast<const std::byte*>(from), bytes, static_cast<std::byte*>(to));
                                 }});
    std::vector<double> sent{1.0};
    std::vector<double> got{0.0};
    const Message batch[] = {send_to(1 - transport.rank(), view_of(sent)), receive_from(1 - transport.rank(), view_of(got))};
    transport.wait(transport.start(batch));
    EXPECT_EQ(got[0], 1.0);
  });
  EXPECT_EQ(copies, 4);   // in and out, on both ranks
  EXPECT_EQ(settled, 2);  // once a batch
}

TEST(Loopback, GivesEveryMessageBackToItself) {
  const std::unique_ptr<Operators> operators = make_cpu_operators(Number::kFp64);
  const std::unique_ptr<Transport> loopback = make_loopback(*operators, 4);
  std::vector<double> sent{1.0, 2.0};
  std::vector<double> got{0.0, 0.0};
  const Message batch[] = {receive_from(3, view_of(got)), send_to(1, view_of(sent))};
  loopback->wait(loopback->start(batch));
  EXPECT_EQ(got, sent);
  EXPECT_EQ(loopback->size(), 4);
}

}  // namespace
}  // namespace cpfit::kernels
