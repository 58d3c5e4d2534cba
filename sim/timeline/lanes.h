// From a run to lanes of spans (model/record/lane.h): folded blocks unfolded, layers counted on, exposed tails marked.
#pragma once

#include <string_view>

#include "model/record/lane.h"
#include "sim/timeline/history.h"

namespace cpfit::timeline {

[[nodiscard]] std::string_view name_of(engine::LaneKind kind);     // "compute", "cp send"
[[nodiscard]] std::string_view name_of(engine::TrafficAxis axis);  // "cp", "" for none
[[nodiscard]] SpanKind span_kind(const engine::Tag& tag);

/// Sent by the first lane of a message to the second one: kNone where the activity is no message, else the rank at the other end
/// as seen from `slot`.
[[nodiscard]] std::int32_t peer_of(const History& history, const Instance& instance, SlotId slot);

/// Every lane of the program, by rank. `exposed` of the spans is 0: see mark_exposed (exposure.h).
[[nodiscard]] Timeline timeline_of(const History& history);

}  // namespace cpfit::timeline
