// Live bytes over time: what a schedule allocates and frees, put on the clock of its run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/timeline/history.h"

namespace cpfit::timeline {

enum class Moment : std::uint8_t { kStart, kEnd };

/// One tensor comes or goes with an activity, in every copy of it. A tensor is known by component, name, layer and micro-batch;
/// what one event allocates others free.
struct MemoryEvent {
  std::int32_t rank = 0;
  ActivityId activity = 0;
  Moment moment = Moment::kStart;
  std::int32_t component = 0;        // into MemoryProgram::components
  std::int32_t name = 0;             // into MemoryProgram::names
  std::int64_t bytes = 0;            // > 0 allocated, < 0 freed
  ActivityId owner = engine::kNone;  // whose layer and micro-batch the tensor has; kNone: `activity`
};

struct MemoryProgram {
  std::vector<std::string> components, names;
  std::vector<std::int64_t> resident;  // (ranks) bytes between steps
  std::int32_t of_resident = -1;       // name of what `resident` holds and the step frees first; -1: it all stays
  std::vector<MemoryEvent> events;
};

struct MemoryPoint {
  Picoseconds time = 0;
  std::int64_t bytes = 0;    // from this instant on
  std::int64_t highest = 0;  // within the instant
  friend bool operator==(const MemoryPoint&, const MemoryPoint&) = default;
};

struct LiveTensor {
  std::int32_t component = 0, name = 0;
  std::int32_t layer = -1, micro_batch = -1;
  std::int64_t bytes = 0;
  friend bool operator==(const LiveTensor&, const LiveTensor&) = default;
};

struct MemoryTrack {
  std::int32_t rank = 0;
  std::int64_t resident = 0;
  std::vector<MemoryPoint> points;               // ascending; the first one at 0
  std::int64_t peak = 0;                         // resident included
  Picoseconds peak_time = 0;                     // first instant of the peak
  std::vector<std::int64_t> components_at_peak;  // (components), less what was resident: below 0 where some of that is freed
  std::vector<LiveTensor> alive_at_peak;         // without resident; largest first, then by component, name, layer, micro-batch
};

/// One track per rank of the program. At one instant, what ends is counted before what starts, each as one change; so a tensor
/// that is freed when its reader ends does not coincide with those that the next kernel allocates, and one that is allocated when
/// a kernel starts coincides with those that it frees at its end. Aborts on our own mistakes: a tensor freed more often than
/// allocated.
[[nodiscard]] std::vector<MemoryTrack> memory_tracks(const History& history, const MemoryProgram& memory);

}  // namespace cpfit::timeline
