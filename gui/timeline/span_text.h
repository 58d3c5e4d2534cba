// Spans, ranks and ranges in words: labels inside spans, tooltips, what is read aloud.
#pragma once

#include <QString>
#include <vector>

#include "gui/timeline/range_sums.h"
#include "gui/timeline/timeline_hit.h"

namespace cpfit::gui {

/// Inside a span, longest first; the widest that has room is drawn: "attention 5/8", "attn 5/8", "5".
[[nodiscard]] std::vector<QString> span_labels(const StepPicture& picture, SpanRef ref);

/// "attention", "ring", "TP".
[[nodiscard]] QString kind_title(SpanKind kind);

/// "rank 1, ring send, KV of step 5 of 8 to rank 2, layer 12, micro-batch 0, 1.19 ms, of which 0.14 ms exposed": what a move to
/// the span announces.
[[nodiscard]] QString span_sentence(const StepPicture& picture, SpanRef ref);

/// The facts of a tooltip and of the details, line by line: name and value.
struct SpanFact {
  QString name, value;
};
[[nodiscard]] std::vector<SpanFact> span_facts(const StepPicture& picture, SpanRef ref);

/// "4.81 ms: compute 4.02 ms, hidden 3.1 ms, exposed 0.21 ms, idle 0.58 ms, 1.2 GiB moved (rank 0)".
[[nodiscard]] QString range_sentence(const StepPicture& picture, std::int32_t rank, const RangeSums& sums);

/// The picture as a whole: "Step of 25.8 s, 8 ranks, 175,328 spans; rank 0 ends last with 702 ms exposed communication".
[[nodiscard]] QString picture_sentence(const StepPicture& picture);

[[nodiscard]] QString duration_text(std::int64_t picoseconds);

}  // namespace cpfit::gui
