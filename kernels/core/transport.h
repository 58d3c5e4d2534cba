// Messages between the ranks of one context-parallel group: in-process threads, MPI processes, NCCL on GPUs, or one rank with
// itself (loopback). A batch of sends and receives is started together, goes on while the rank computes, and is waited for once.
// On a GPU a batch starts after the operators called before it and `wait` delays the operators called after it; the host does not
// block there. Matching: the i-th send from a to b matches the i-th receive of b from a (no tags, as NCCL has none). Sizes of
// both must agree. Failure: a peer that died, or a wait longer than the timeout, throws cpfit::Error on EVERY rank with who
// waited for whom, and since when; afterwards the transport only refuses. Nothing hangs, no process is left behind.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>

#include "kernels/core/array.h"
#include "kernels/core/operators.h"

namespace cpfit::kernels {

struct Message {
  enum class Direction : std::uint8_t { kSend, kReceive };
  Direction direction = Direction::kSend;
  std::int32_t peer = 0;
  View view;  // a send's view is left alone until its batch was waited for
};
[[nodiscard]] inline Message send_to(std::int32_t peer, const View& view) { return {Message::Direction::kSend, peer, view}; }
[[nodiscard]] inline Message receive_from(std::int32_t peer, const View& view) {
  return {Message::Direction::kReceive, peer, view};
}

/// Names a started batch; 0 is "none", and waiting for it returns at once.
struct Ticket {
  std::uint64_t id = 0;
};

class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  [[nodiscard]] virtual std::int32_t rank() const = 0;
  [[nodiscard]] virtual std::int32_t size() const = 0;

  virtual Ticket start(std::span<const Message> batch) = 0;
  virtual void wait(Ticket ticket) = 0;
  /// Has the batch ended? Does not block. Where messages only move inside the transport's calls (MPI), they move a little. False:
  /// not yet, or not known before wait(). The batch is still to be waited for.
  [[nodiscard]] virtual bool test(Ticket ticket) {
    (void)ticket;
    return false;
  }
  /// Step `step` of a ring begins on this rank: for decorators that time; other transports need not know.
  virtual void begin_step(std::int32_t step) { (void)step; }
  /// All ranks have called it.
  virtual void barrier() = 0;

  // Collectives over `group` (ascending ranks of this transport, this one among them). The base class builds them from batches;
  // NCCL overrides with its own. A rank's own part is a message to itself, unless it already lies in its place. all_to_all: part
  // i of `from` (equal parts by rows) goes to group[i]. reduce_scatter sums in the type of the views, in ascending order of
  // ranks, so that every transport gives the same bits.
  virtual Ticket start_all_gather(std::span<const std::int32_t> group, const View& own, const View& all);
  virtual Ticket start_all_to_all(std::span<const std::int32_t> group, const View& from, const View& to);
  virtual void reduce_scatter(Operators& operators, std::span<const std::int32_t> group, const View& all, const View& own);
  /// Sum over the group, on every rank.
  virtual void all_reduce(Operators& operators, std::span<const std::int32_t> group, const View& value);
};

}  // namespace cpfit::kernels
