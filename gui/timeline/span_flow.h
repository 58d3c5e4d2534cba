// Who a span belongs with: the other end of its message, what it waited for, what waited for it, and the way of a KV block round
// the ring. Pure look-ups in one picture; only the selected span is ever asked.
#pragma once

#include <optional>
#include <vector>

#include "gui/timeline/timeline_hit.h"

namespace cpfit::gui {

/// The receive of a send and the send of a receive. Nothing for kernels and collectives.
[[nodiscard]] std::optional<SpanRef> partner_of(const StepPicture& picture, SpanRef ref);

/// What the span waited for last, on its own rank or (a late peer) through it. With the simulation at hand as it recorded it;
/// stored lanes: the span that ended at the instant at which this one was posted. Nothing for the first ones.
[[nodiscard]] std::optional<SpanRef> cause_of(const StepPicture& picture, SpanRef ref);

/// Spans whose cause is this one, soonest first, at most `limit`.
[[nodiscard]] std::vector<SpanRef> effects_of(const StepPicture& picture, SpanRef ref, std::size_t limit);

/// The hops of the KV block that a ring message carries, in order of time: each a send, from the owner's on. The message itself
/// is among them. Empty for everything else.
[[nodiscard]] std::vector<SpanRef> block_hops(const StepPicture& picture, SpanRef ref);

/// cause_of again and again: the chain that led here, latest first, at most `limit`.
[[nodiscard]] std::vector<SpanRef> chain_before(const StepPicture& picture, SpanRef ref, std::size_t limit);

/// The span of a rank's lanes with this identity.
[[nodiscard]] std::optional<SpanRef> find_span(const StepPicture& picture, std::int32_t rank, std::int32_t activity,
                                               std::int32_t copy, std::int64_t start);

}  // namespace cpfit::gui
