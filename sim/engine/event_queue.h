// The queue of coming events: a heap with four children per node (LaMarca and Ladner 1996: half the levels of a binary heap, the
// four children share a cache line). The order is total, so the order of insertion leaves no trace. Entries are never moved or
// removed: whoever put one in knows when it has become stale.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/engine/clock.h"

namespace cpfit::engine {

struct Event {
  Picoseconds time = 0;
  std::uint64_t key = 0;  // activity << 32 | (slot + 1), or 0 in the lower half for the activity itself
};

[[nodiscard]] inline bool earlier(const Event& a, const Event& b) {
  return a.time < b.time || (a.time == b.time && a.key < b.key);
}

class EventQueue {
 public:
  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] std::size_t size() const { return heap_.size(); }
  [[nodiscard]] const Event& top() const { return heap_.front(); }
  /// The next ones, roughly: the first is the first, the second is among the four after it, and so on.
  [[nodiscard]] const Event& peek(std::size_t place) const { return heap_[place]; }

  void push(Event event) {
    std::size_t hole = heap_.size();
    heap_.push_back(event);
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / 4;
      if (!earlier(event, heap_[parent])) break;
      heap_[hole] = heap_[parent];
      hole = parent;
    }
    heap_[hole] = event;
  }

  Event pop() {
    const Event first = heap_.front();
    const Event last = heap_.back();
    heap_.pop_back();
    const std::size_t size = heap_.size();
    std::size_t hole = 0;
    for (std::size_t child = 1; child < size; child = 4 * hole + 1) {
      const std::size_t end = child + 4 < size ? child + 4 : size;
      std::size_t best = child;
      for (std::size_t other = child + 1; other < end; ++other) {
        if (earlier(heap_[other], heap_[best])) best = other;
      }
      if (!earlier(heap_[best], last)) break;
      heap_[hole] = heap_[best];
      hole = best;
    }
    if (size > 0) heap_[hole] = last;
    return first;
  }

 private:
  std::vector<Event> heap_;
};

}  // namespace cpfit::engine
