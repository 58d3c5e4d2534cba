// Ranks as threads of one process that share mailboxes: for tests and for `cpfit verify` without processes. A send is copied into
// a mailbox when its batch starts, a receive out of it when its batch is waited for, so results do not depend on how the threads
// take turns. A rank that throws, or waits longer than the timeout, ends all ranks with its message.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "kernels/core/transport.h"

namespace cpfit::kernels {

/// How a rank's memory is reached from the host; ranks that share one GPU hand over its copies. By default memory is the host's.
struct MemoryAccess {
  std::function<void()> settle;                                              // operators called so far have taken effect
  std::function<void(void* to, const void* from, std::int64_t bytes)> copy;  // either side may be on the device; done on return
};

class Mailboxes;

class InProcessTransport final : public Transport {
 public:
  InProcessTransport(std::shared_ptr<Mailboxes> mailboxes, std::int32_t rank);

  void reach_memory_with(MemoryAccess access);

  [[nodiscard]] std::int32_t rank() const override { return rank_; }
  [[nodiscard]] std::int32_t size() const override;
  Ticket start(std::span<const Message> batch) override;
  void wait(Ticket ticket) override;
  void barrier() override;

 private:
  struct Expected {
    std::int32_t from = 0;
    std::uint64_t number = 0;  // of the messages from there
    View into;
  };
  void copy(void* to, const void* from, std::int64_t bytes) const;

  std::shared_ptr<Mailboxes> mailboxes_;
  std::int32_t rank_;
  MemoryAccess access_;
  std::vector<std::uint64_t> sent_;      // (ranks) messages so far
  std::vector<std::uint64_t> expected_;  // (ranks)
  std::map<std::uint64_t, std::vector<Expected>> batches_;
  std::uint64_t last_ticket_ = 0;
};

/// Runs `function` on `ranks` threads, joins them all, and throws the first failure as Error, with the rank that had it. A rank
/// that waits longer than `timeout` for another fails. Nothing can end a rank that computes for ever.
void run_ranks(std::int32_t ranks, std::chrono::milliseconds timeout, const std::function<void(InProcessTransport&)>& function);

}  // namespace cpfit::kernels
