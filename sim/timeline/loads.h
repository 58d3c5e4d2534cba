// What each pair of ranks and each link carried.
#pragma once

#include <string>
#include <vector>

#include "model/record/run.h"
#include "sim/timeline/history.h"

namespace cpfit::timeline {

/// Messages from one rank to another.
struct EdgeLoad {
  engine::TrafficAxis axis = engine::TrafficAxis::kNone;
  std::int32_t from = 0, to = 0;  // ranks of the program
  std::int64_t messages = 0;
  double bytes = 0;
  Picoseconds busy = 0;  // union of the times during which one ran
  friend bool operator==(const EdgeLoad&, const EdgeLoad&) = default;
};
/// By axis, then from, then to.
[[nodiscard]] std::vector<EdgeLoad> edge_loads(const History& history);

/// A directed link of the topology. Several resources may stand for one link: bytes are added, of busy times the longest counts.
struct LinkUse {
  std::int32_t link = kNone;  // into Topology::links()
  double bytes = 0;
  Picoseconds busy = 0;
  friend bool operator==(const LinkUse&, const LinkUse&) = default;
};
/// From Run::drawn and Run::busy, messages and collectives alike; ascending by link, unused links left out.
[[nodiscard]] std::vector<LinkUse> link_uses(const History& history);

/// As the record has them; `ends` (links of the topology) gives the names of a link's two ends.
[[nodiscard]] std::vector<LinkLoad> link_loads(const std::vector<LinkUse>& uses,
                                               const std::vector<std::pair<std::string, std::string>>& ends);

}  // namespace cpfit::timeline
