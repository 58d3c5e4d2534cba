// Collectives that the base class builds from batches of messages, over a transport that does no more than match them.
#include "kernels/core/transport.h"

#include <gtest/gtest.h>

#include <barrier>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "kernels/reference/cpu_operators.h"

namespace cpfit::kernels {
namespace {

/// Batches of ranks that are threads; everyone waits for everyone.
struct Meeting {
  explicit Meeting(std::int32_t ranks) : batches(static_cast<std::size_t>(ranks)), meeting(ranks) {}
  std::vector<std::vector<Message>> batches;
  std::barrier<> meeting;
};

class MeetingTransport final : public Transport {
 public:
  MeetingTransport(Meeting& exchange, std::int32_t rank) : exchange_(exchange), rank_(rank) {}
  [[nodiscard]] std::int32_t rank() const override { return rank_; }
  [[nodiscard]] std::int32_t size() const override { return static_cast<std::int32_t>(exchange_.batches.size()); }
  Ticket start(std::span<const Message> batch) override {
    exchange_.batches[static_cast<std::size_t>(rank_)].assign(batch.begin(), batch.end());
    return {1};
  }
  void wait(Ticket) override {
    exchange_.meeting.arrive_and_wait();
    std::vector<std::size_t> next(exchange_.batches.size());  // message of a peer to look at
    for (const Message& message : exchange_.batches[static_cast<std::size_t>(rank_)]) {
      if (message.direction != Message::Direction::kReceive) continue;
      const std::vector<Message>& theirs = exchange_.batches[static_cast<std::size_t>(message.peer)];
      std::size_t& i = next[static_cast<std::size_t>(message.peer)];
      while (theirs.at(i).direction != Message::Direction::kSend || theirs[i].peer != rank_) ++i;
      ASSERT_EQ(theirs[i].view.bytes(), message.view.bytes());
      std::memcpy(message.view.data, theirs[i++].view.data, static_cast<std::size_t>(message.view.bytes()));
    }
    exchange_.meeting.arrive_and_wait();
  }
  void barrier() override { exchange_.meeting.arrive_and_wait(); }

 private:
  Meeting& exchange_;
  std::int32_t rank_;
};

using RankBody = std::function<void(Operators&, Transport&)>;

void on_ranks(std::int32_t ranks, const RankBody& body) {
  Meeting exchange(ranks);
  std::vector<std::jthread> threads;
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto operators = make_cpu_operators(Number::kFp32);
      MeetingTransport transport(exchange, rank);
      body(*operators, transport);
    });
  }
}

const std::vector<std::int32_t> kAll = {0, 1, 2};

TEST(Collectives, AllGatherPutsTheRanksInOrder) {
  on_ranks(3, [](Operators& operators, Transport& transport) {
    const double r = transport.rank();
    const Array own = operators.upload(Number::kFp32, 1, 2, std::vector{10 * r, 10 * r + 1});
    const Array all = operators.allocate(Number::kFp32, 3, 2);
    transport.wait(transport.start_all_gather(kAll, own, all));
    EXPECT_EQ(operators.download(all), (std::vector<double>{0, 1, 10, 11, 20, 21}));
    // In place: the own part already lies where it belongs.
    const Array again = operators.allocate(Number::kFp32, 3, 2);
    operators.copy(own, again.view().slice(transport.rank(), 1));
    transport.wait(transport.start_all_gather(kAll, again.view().slice(transport.rank(), 1), again));
    EXPECT_EQ(operators.download(again), (std::vector<double>{0, 1, 10, 11, 20, 21}));
  });
}

TEST(Collectives, AllToAllTransposesPartsAndRanks) {
  on_ranks(3, [](Operators& operators, Transport& transport) {
    const double r = transport.rank();
    const Array from = operators.upload(Number::kFp32, 3, 1, std::vector{10 * r, 10 * r + 1, 10 * r + 2});
    const Array to = operators.allocate(Number::kFp32, 3, 1);
    transport.wait(transport.start_all_to_all(kAll, from, to));
    EXPECT_EQ(operators.download(to), (std::vector<double>{r, 10 + r, 20 + r}));  // part r of every rank
  });
}

TEST(Collectives, SubgroupsWorkSideBySide) {
  // Ranks 0 and 2 together, 1 and 3 together.
  on_ranks(4, [](Operators& operators, Transport& transport) {
    const std::int32_t parity = transport.rank() % 2;
    const std::vector<std::int32_t> group = {parity, parity + 2};
    const Array value = operators.upload(Number::kFp32, 1, 1, std::vector{double(transport.rank())});
    transport.all_reduce(operators, group, value);
    EXPECT_EQ(operators.download(value), (std::vector<double>{2.0 * parity + 2}));
  });
}

TEST(Collectives, SumsAreTakenInTheOrderOfTheRanksInTheViewsType) {
  // bf16 has 8 significant bits. 256 + 1 rounds to 256 (a tie, to even), twice: in order 256, 1, 1 gives 256; 1 + 1 first would
  // give 258. Every rank has to hold the same.
  on_ranks(3, [](Operators& operators, Transport& transport) {
    const std::vector<double> values = {transport.rank() == 0 ? 256.0 : 1.0};
    const Array value = operators.upload(Number::kBf16, 1, 1, values);
    transport.all_reduce(operators, kAll, value);
    EXPECT_EQ(operators.download(value), (std::vector<double>{256}));
  });
}

TEST(Collectives, ReduceScatterHandsEachRankItsPart) {
  on_ranks(3, [](Operators& operators, Transport& transport) {
    const double r = transport.rank();
    // Rank r holds 100 r + part: the sum of part p over ranks 0, 1, 2 is 300 + 3 p.
    const Array all = operators.upload(Number::kFp32, 3, 1, std::vector{100 * r, 100 * r + 1, 100 * r + 2});
    const Array own = operators.allocate(Number::kFp32, 1, 1);
    transport.reduce_scatter(operators, kAll, all, own);
    EXPECT_EQ(operators.download(own), (std::vector<double>{300 + 3 * r}));
  });
}

TEST(CollectivesDeathTest, SizesThatDoNotDivideStopTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Meeting exchange(1);
  MeetingTransport transport(exchange, 0);
  const auto operators = make_cpu_operators(Number::kFp32);
  const Array from = operators->allocate(Number::kFp32, 3, 1);
  const std::vector<std::int32_t> pair = {0, 1};
  EXPECT_DEATH((void)transport.start_all_to_all(pair, from, from), "all_to_all: 3 rows in 2 parts");
}

}  // namespace
}  // namespace cpfit::kernels
