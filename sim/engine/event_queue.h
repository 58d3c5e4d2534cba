// The queue of coming events. The order is total, so the order of insertion leaves no trace. Entries are never moved or removed:
// whoever put one in knows when it has become stale.
//
// Few events (ranks of one node) stand in a sorted row: the next one is its first, and a new one mostly belongs near it (a
// message spends its latency, a slowed kernel takes a little longer). Many stand in a heap with four children per node (LaMarca
// and Ladner 1996: half the levels of a binary heap, the four children share a cache line). A sorted row is such a heap already.
//
// Which event of a heap is earlier cannot be guessed, so it is computed without a branch; behind the last event stand ones that
// never come, so that every node has four children to compare. What an event leads to is mostly one more event: the place of the
// one taken out stays empty until that is put there, which saves filling it with the last one first.
#pragma once

#include <algorithm>
#include <array>
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
  [[nodiscard]] std::size_t size() const { return in_row_ ? kMany - first_ : end_ - (next_ == 0 ? 0U : 1U); }
  /// When the next one comes; INT64_MAX when there is none.
  [[nodiscard]] Picoseconds next_time() const { return in_row_ ? row_[first_].time : heap_[next_].time; }
  /// After a pop: of those to come some of the next, `place` from 0 to 3. At most size() of them mean something.
  [[nodiscard]] const Event& peek(std::size_t place) const { return in_row_ ? row_[first_ + place] : heap_[1 + place]; }

  void push(Event event) {
    if (!in_row_ || first_ == 0) return push_on_heap(event);
    std::size_t place = --first_;
    while (earlier(row_[place + 1], event)) {
      row_[place] = row_[place + 1];
      ++place;
    }
    row_[place] = event;
  }

  /// Not of an empty queue.
  Event pop() {
    if (in_row_) return row_[first_++];
    if (next_ != 0) fill();
    next_ = earliest_child(0);  // known before anybody asks
    const Event event = heap_[0];
    if (end_ <= kFew) leave_heap();
    return event;
  }

 private:
  static constexpr std::size_t kMany = 32;  // beyond, the row becomes a heap
  static constexpr std::size_t kFew = 8;    // from here down the heap becomes a row

  [[gnu::noinline]] void push_on_heap(Event event) {
    if (in_row_) leave_row();
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

  /// The row is full: a heap as it stands.
  void leave_row() {
    heap_.assign(std::max<std::size_t>(heap_.size(), 2 * kMany), {});
    std::copy(row_.begin(), row_.begin() + kMany, heap_.begin());
    end_ = kMany;
    next_ = 0;
    in_row_ = false;
  }
  /// What is left behind the vacant root, in order.
  [[gnu::noinline]] void leave_heap() {
    first_ = kMany - (end_ - 1);
    const auto first = row_.begin() + static_cast<std::ptrdiff_t>(first_);
    std::copy(heap_.begin() + 1, heap_.begin() + static_cast<std::ptrdiff_t>(end_), first);
    std::sort(first, row_.begin() + kMany, earlier);
    in_row_ = true;
  }

  // The row: events from first_ on, behind them one that never comes.
  std::array<Event, kMany + 1> row_;
  std::size_t first_ = kMany;
  bool in_row_ = true;
  // The heap.
  std::vector<Event> heap_;  // at least four beyond `end_`, which never come
  std::size_t end_ = 0;      // places taken, a vacant root among them
  std::size_t next_ = 0;     // the earliest event: 0, or a child of the root, whose event was taken out
};

}  // namespace cpfit::engine
