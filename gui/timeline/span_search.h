// Finding spans by words: "ring exposed", "attention layer 3 step 5", "rank 6 dkv backward", "mb 2 optimizer".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gui/timeline/timeline_hit.h"

namespace cpfit::gui {

/// Every condition must hold. Numbers as people count them in the view: steps from 1.
struct SpanQuery {
  std::optional<std::int64_t> rank, layer, step, micro_batch;
  bool exposed = false, critical = false, recomputed = false;
  std::vector<std::string> words;  // lower case; each within the span's name, its lane's title, kind or pass
  [[nodiscard]] bool empty() const {
    return !rank && !layer && !step && !micro_batch && !exposed && !critical && !recomputed && words.empty();
  }
};
[[nodiscard]] SpanQuery span_query(const std::string& text);

[[nodiscard]] bool matches(const StepPicture& picture, SpanRef ref, const SpanQuery& query);

/// The next match after `from` (before it for by < 0) in the order of start, then lane; without `from` the first at or after
/// `time`. Goes round the end. Nothing for an empty query or when none matches.
[[nodiscard]] std::optional<SpanRef> find_match(const StepPicture& picture, const SpanQuery& query, std::optional<SpanRef> from,
                                                std::int64_t time, int by);
[[nodiscard]] std::int64_t count_matches(const StepPicture& picture, const SpanQuery& query);

}  // namespace cpfit::gui
