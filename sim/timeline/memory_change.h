// One change of a rank's live memory, put on the clock: what memory_tracks sums up and what a stacked picture of it is made of.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/timeline/memory_track.h"

namespace cpfit::timeline {

struct MemoryChange {
  Picoseconds time = 0;
  std::int8_t phase = 0;  // within the instant: ends, starts, ends of what takes no time
  LiveTensor tensor;      // bytes: the change
};

[[nodiscard]] MemoryChange change_of(const History& history, const MemoryEvent& event, const Instance& instance);

/// By time, then phase; changes of one instant and phase count as one.
[[nodiscard]] inline bool comes_before(const MemoryChange& a, const MemoryChange& b) {
  return a.time != b.time ? a.time < b.time : a.phase < b.phase;
}
[[nodiscard]] inline bool counts_with(const MemoryChange& a, const MemoryChange& b) {
  return a.time == b.time && a.phase == b.phase;
}

/// All changes of one rank, in that order.
[[nodiscard]] std::vector<MemoryChange> memory_changes(const History& history, const MemoryProgram& memory, std::int32_t rank);

}  // namespace cpfit::timeline
