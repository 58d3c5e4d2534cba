// A quantity over time beside the lanes: the rate of a link, the live memory of a rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/timeline/history.h"
#include "sim/timeline/memory_track.h"

namespace cpfit::timeline {

struct CounterPoint {
  Picoseconds time = 0;
  double value = 0;  // from then on
  friend bool operator==(const CounterPoint&, const CounterPoint&) = default;
};

struct CounterTrack {
  std::int32_t rank = engine::kNone;  // kNone: of no rank (links)
  std::string name;
  std::string unit;                  // "GB/s", "bytes"
  std::vector<CounterPoint> points;  // ascending
};

/// GB/s over time of every link that carries something, from the mean rate of each transfer between its start-up and its end.
/// `names`: of links, by index into Topology::links(); a link beyond the list is called "link <index>".
[[nodiscard]] std::vector<CounterTrack> link_rates(const History& history, const std::vector<std::string>& names);

/// "memory" in bytes, one track a rank; an instant's highest value comes first where it is not the last.
[[nodiscard]] std::vector<CounterTrack> memory_counters(const std::vector<MemoryTrack>& tracks);

}  // namespace cpfit::timeline
