// Curves under the lanes, on the same time axis: live memory of a rank stacked by component, the used share of links. Built
// beside the picture, away from the window's thread, because they cost more than it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gui/study/simulator.h"
#include "gui/timeline/time_window.h"
#include "sim/plan/memory_stack.h"
#include "sim/timeline/counter_track.h"

namespace cpfit::gui {

struct LinkTrack {
  std::string name;  // "n0.gpu3 -> n0.nvsw0"
  BytesPerSecond capacity;
  std::vector<timeline::CounterPoint> points;  // GB/s
  double bytes = 0;
  Seconds busy;
};

struct StepTracks {
  std::vector<MemoryStack> memory;  // of some simulated ranks: of every stage the one with the highest peak
  Bytes capacity;                   // of the device, for allocated bytes; 0: unknown
  std::vector<LinkTrack> links;     // those that carry something, busiest first
};

/// Stacks of the ranks given (simulated). `links`: how many, busiest first.
[[nodiscard]] std::shared_ptr<const StepTracks> tracks_of(const Workbench& bench, const Training& training,
                                                          const StepTimeline& step, const std::vector<std::int32_t>& ranks,
                                                          std::size_t links);

/// One pixel column of a stack: what is alive at its highest instant, and its lowest total.
struct StackColumn {
  std::int64_t highest = 0, lowest = 0;
  std::size_t point = 0;  // of `highest`
  friend bool operator==(const StackColumn&, const StackColumn&) = default;
};
/// Exact for any window: a column's highest is the highest total at any instant in it. (columns)
[[nodiscard]] std::vector<StackColumn> stack_columns(const MemoryStack& stack, TimeWindow window, std::size_t columns);

/// Of a link: mean and highest rate of each column, GB/s.
struct RateColumn {
  double mean = 0, highest = 0;
};
[[nodiscard]] std::vector<RateColumn> rate_columns(const LinkTrack& track, TimeWindow window, std::size_t columns);

/// Index of the point that holds at `time`.
[[nodiscard]] std::size_t point_at(const MemoryStack& stack, std::int64_t time);

}  // namespace cpfit::gui
