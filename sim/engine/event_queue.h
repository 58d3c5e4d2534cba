// The queue of coming events: a heap with four children per node (LaMarca and Ladner 1996: half the levels of a binary heap, the
// four children share a cache line). The order is total, so the order of insertion leaves no trace. Entries are never moved or
// removed: whoever put one in knows when it has become stale.
//
// Which event is earlier cannot be guessed, so it is computed without a branch; behind the last event stand ones that never come,
// so that every node has four children to compare. What an event leads to is mostly one more event: the place of the one taken
// out stays empty until that is put there, which saves filling it with the last one first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/engine/clock.h"

namespace cpfit::engine {

struct Event {
  Picoseconds time = INT64_MAX;
  std::uint64_t key = UINT64_MAX;  // activity << 32 | (slot + 1), or 0 in the lower half for the activity itself
};

/// Times are never negative.
[[nodiscard]] inline bool earlier(const Event& a, const Event& b) {
  __extension__ typedef unsigned __int128 Whole;
  return (static_cast<Whole>(a.time) << 64U | a.key) < (static_cast<Whole>(b.time) << 64U | b.key);
}

class EventQueue {
 public:
  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] std::size_t size() const { return end_ - (next_ == 0 ? 0U : 1U); }
  /// When the next one comes; INT64_MAX when there is none.
  [[nodiscard]] Picoseconds next_time() const { return heap_[next_].time; }
  /// Of those to come some of the next, `place` from 0 to 4; at most size() of them mean something.
  [[nodiscard]] const Event& peek(std::size_t place) const { return heap_[place]; }

  void push(Event event) {
    if (next_ != 0) return sink(event);
    std::size_t hole = end_++;
    if (heap_.size() < end_ + 4) heap_.resize(2 * heap_.size());
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / 4;
      if (!earlier(event, heap_[parent])) break;
      heap_[hole] = heap_[parent];
      hole = parent;
    }
    heap_[hole] = event;
  }

  /// Not of an empty queue.
  Event pop() {
    if (next_ != 0) fill();
    next_ = earliest_child(0);  // known before anybody asks
    return heap_[0];
  }

  void clear() {
    for (std::size_t i = 0; i < end_; ++i) heap_[i] = {};
    end_ = 0;
    next_ = 0;
  }

 private:
  [[nodiscard]] std::size_t earliest_child(std::size_t node) const {
    const std::size_t first = 4 * node + 1;
    const Event* const child = &heap_[first];
    const std::size_t left = earlier(child[1], child[0]) ? 1 : 0;
    const std::size_t right = 2 + (earlier(child[3], child[2]) ? 1 : 0);
    // Masked rather than chosen: compilers make a branch of a choice.
    const std::size_t take_right = std::size_t{0} - (earlier(child[right], child[left]) ? 1U : 0U);
    return first + (left ^ ((left ^ right) & take_right));
  }
  /// From the vacant root down to its place.
  void sink(Event event) {
    std::size_t hole = 0;
    std::size_t best = next_;
    next_ = 0;
    while (earlier(heap_[best], event)) {
      heap_[hole] = heap_[best];
      hole = best;
      if (4 * hole + 1 >= end_) break;
      best = earliest_child(hole);
    }
    heap_[hole] = event;
  }
  void fill() {
    const Event last = heap_[--end_];
    heap_[end_] = {};
    if (end_ == 0) {
      next_ = 0;
      return;
    }
    next_ = earliest_child(0);  // it may have been the last one
    sink(last);
  }

  std::vector<Event> heap_ = std::vector<Event>(64);  // at least four beyond `end_`, which never come
  std::size_t end_ = 0;                               // places taken, a vacant root among them
  std::size_t next_ = 0;                              // the earliest event: 0, or a child of the root, whose event was taken out
};

}  // namespace cpfit::engine
