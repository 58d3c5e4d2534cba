// Timelines (spans of every lane of a simulated step) in a store, packed per lane: 64 bytes a span, little-endian, in the order
// of LaneSpan's fields. A timeline of a million spans is one row a lane and reads in one pass.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "db/store/store.h"
#include "model/record/lane.h"

namespace cpfit {

enum class TimelineId : std::int64_t {};

/// What a timeline was simulated from.
struct TimelineOrigin {
  std::string scenario_path, scenario_text;
  std::string recipe;  // complete text
  std::string tool_version, rates_version;
  friend bool operator==(const TimelineOrigin&, const TimelineOrigin&) = default;
};

/// One transaction.
[[nodiscard]] TimelineId save_timeline(Store& store, const Timeline& timeline, const TimelineOrigin& origin);

struct TimelineListing {
  TimelineId id{};
  TimelineOrigin origin;
  std::int64_t stored_unix_seconds = 0;
  std::int64_t step_picoseconds = 0;
  std::int64_t lanes = 0, spans = 0;
};

/// Youngest first.
[[nodiscard]] std::vector<TimelineListing> list_timelines(const Store& store);

/// Problem "timeline.unknown" when there is none of that id. Throws Error when a lane's bytes are no whole spans.
[[nodiscard]] Outcome<Timeline> load_timeline(const Store& store, TimelineId id);

}  // namespace cpfit
