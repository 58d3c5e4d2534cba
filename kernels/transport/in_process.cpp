#include "kernels/transport/in_process.h"

#include <fmt/format.h>

#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "kernels/core/require.h"
#include "model/quantity/problem.h"

namespace cpfit::kernels {

namespace {

using Clock = std::chrono::steady_clock;

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

/// What the ranks share. The first failure is kept; whoever comes after it is refused.
class Mailboxes {
 public:
  using Letter = std::vector<std::byte>;

  Mailboxes(std::int32_t ranks, std::chrono::milliseconds timeout)
      : ranks_(ranks),
        timeout_(timeout),
        changed_(static_cast<std::size_t>(ranks)),
        letters_(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks)),
        ended_(static_cast<std::size_t>(ranks), false),
        begin_(Clock::now()) {}

  [[nodiscard]] std::int32_t ranks() const { return ranks_; }

  void put(std::int32_t from, std::int32_t to, std::uint64_t number, Letter letter) {
    const std::lock_guard lock(mutex_);
    refuse_after_failure(from);
    box(from, to).emplace(number, std::move(letter));
    changed_[static_cast<std::size_t>(to)].notify_one();
  }

  [[nodiscard]] Letter take(std::int32_t from, std::int32_t to, std::uint64_t number) {
    std::unique_lock lock(mutex_);
    std::map<std::uint64_t, Letter>& letters = box(from, to);
    const std::string what = fmt::format("message {} from rank {}", number, from);
    wait_until(lock, to, what, [&] {
      if (letters.contains(number)) return true;
      if (ended_[static_cast<std::size_t>(from)]) {
        fail_locked(fmt::format("rank {} waits for {}, which has ended without sending it", to, what));
        throw Error(failure_);
      }
      return false;
    });
    Letter letter = std::move(letters.at(number));
    letters.erase(number);
    return letter;
  }

  void barrier(std::int32_t rank) {
    std::unique_lock lock(mutex_);
    refuse_after_failure(rank);
    const std::uint64_t round = barrier_round_;
    if (++barrier_arrived_ == ranks_) {
      barrier_arrived_ = 0;
      ++barrier_round_;
      wake_all();
      return;
    }
    wait_until(lock, rank, "the other ranks at a barrier", [&] { return barrier_round_ != round; });
  }

  void end(std::int32_t rank) {
    const std::lock_guard lock(mutex_);
    ended_[static_cast<std::size_t>(rank)] = true;
    wake_all();
  }

  void fail(const std::string& message) {
    const std::lock_guard lock(mutex_);
    fail_locked(message);
  }

  void refuse_after_failure(std::int32_t rank) const {
    if (!failure_.empty()) throw Error(fmt::format("rank {} stops: {}", rank, failure_));
  }

  /// Empty: all went well.
  [[nodiscard]] const std::string& failure() const { return failure_; }

 private:
  std::map<std::uint64_t, Letter>& box(std::int32_t from, std::int32_t to) {
    return letters_[static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks_) + static_cast<std::size_t>(to)];
  }

  void fail_locked(const std::string& message) {
    if (failure_.empty()) failure_ = message;
    wake_all();
  }

  void wake_all() {
    for (std::condition_variable& rank : changed_) rank.notify_one();
  }

  template <class Predicate>
  void wait_until(std::unique_lock<std::mutex>& lock, std::int32_t rank, const std::string& what, const Predicate& arrived) {
    const Clock::time_point since = Clock::now();
    while (true) {
      refuse_after_failure(rank);
      if (arrived()) return;
      if (Clock::now() - since >= timeout_) {
        fail_locked(fmt::format("rank {} waited {:.3g} s for {}, since {:.3f} s after the start", rank, seconds(timeout_), what,
                                seconds(since - begin_)));
        throw Error(failure_);
      }
      changed_[static_cast<std::size_t>(rank)].wait_until(lock, since + timeout_);
    }
  }

  std::int32_t ranks_;
  std::chrono::milliseconds timeout_;
  std::mutex mutex_;
  std::vector<std::condition_variable> changed_;          // (ranks): each waits for its own
  std::vector<std::map<std::uint64_t, Letter>> letters_;  // (from * ranks + to) by number
  std::vector<bool> ended_;
  std::int32_t barrier_arrived_ = 0;
  std::uint64_t barrier_round_ = 0;
  std::string failure_;
  Clock::time_point begin_;
};

InProcessTransport::InProcessTransport(std::shared_ptr<Mailboxes> mailboxes, std::int32_t rank)
    : mailboxes_(std::move(mailboxes)),
      rank_(rank),
      sent_(static_cast<std::size_t>(mailboxes_->ranks()), 0),
      expected_(static_cast<std::size_t>(mailboxes_->ranks()), 0) {}

std::int32_t InProcessTransport::size() const { return mailboxes_->ranks(); }

void InProcessTransport::reach_memory_with(MemoryAccess access) { access_ = std::move(access); }

void InProcessTransport::copy(void* to, const void* from, std::int64_t bytes) const {
  if (bytes == 0) return;
  if (access_.copy) {
    access_.copy(to, from, bytes);
  } else {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
}

Ticket InProcessTransport::start(std::span<const Message> batch) {
  if (access_.settle) access_.settle();
  std::vector<Expected> expected;
  for (const Message& message : batch) {
    require(message.peer >= 0 && message.peer < size(), "transport: a message to rank {} of {}", message.peer, size());
    const auto peer = static_cast<std::size_t>(message.peer);
    if (message.direction == Message::Direction::kReceive) {
      expected.push_back({message.peer, expected_[peer]++, message.view});
      continue;
    }
    Mailboxes::Letter letter(static_cast<std::size_t>(message.view.bytes()));
    copy(letter.data(), message.view.data, message.view.bytes());
    mailboxes_->put(rank_, message.peer, sent_[peer]++, std::move(letter));
  }
  batches_[++last_ticket_] = std::move(expected);
  return {last_ticket_};
}

void InProcessTransport::wait(Ticket ticket) {
  if (ticket.id == 0) return;
  const auto found = batches_.find(ticket.id);
  require(found != batches_.end(), "transport: rank {} waits for batch {}, which it did not start or has waited for", rank_,
          ticket.id);
  for (const Expected& expected : found->second) {
    const Mailboxes::Letter letter = mailboxes_->take(expected.from, rank_, expected.number);
    const auto bytes = static_cast<std::int64_t>(letter.size());
    if (bytes != expected.into.bytes()) {
      const std::string message = fmt::format("rank {} expects {} bytes of message {} from rank {}, which sent {}", rank_,
                                              expected.into.bytes(), expected.number, expected.from, bytes);
      mailboxes_->fail(message);
      throw Error(message);
    }
    copy(expected.into.data, letter.data(), bytes);
  }
  batches_.erase(found);
}

void InProcessTransport::barrier() { mailboxes_->barrier(rank_); }

void run_ranks(std::int32_t ranks, std::chrono::milliseconds timeout, const std::function<void(InProcessTransport&)>& function) {
  require(ranks > 0, "run_ranks: {} ranks", ranks);
  const auto mailboxes = std::make_shared<Mailboxes>(ranks, timeout);
  const auto run = [&](std::int32_t rank) {
    try {
      InProcessTransport transport(mailboxes, rank);
      function(transport);
    } catch (const std::exception& failure) {
      mailboxes->fail(fmt::format("rank {} failed: {}", rank, failure.what()));  // kept only when it is the first
    } catch (...) {
      mailboxes->fail(fmt::format("rank {} failed with something that is no exception of ours", rank));
    }
    mailboxes->end(rank);
  };
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(ranks));
  try {
    for (std::int32_t rank = 0; rank < ranks; ++rank) threads.emplace_back(run, rank);
  } catch (const std::exception& failure) {  // the system gives no more threads: those that run must not wait for them
    mailboxes->fail(fmt::format("rank {} could not be started: {}", threads.size(), failure.what()));
  }
  for (std::thread& thread : threads) thread.join();
  if (!mailboxes->failure().empty()) throw Error(mailboxes->failure());
}

}  // namespace cpfit::kernels
