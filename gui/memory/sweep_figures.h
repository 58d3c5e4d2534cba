// What a controlled sweep over CP degree and sequence length says, as figures: series to plot, the cells of the feasible picture,
// crossovers, and the sentence about the current length. Pure.
#pragma once

#include <QString>
#include <cstdint>
#include <optional>
#include <vector>

#include "gui/study/live_estimate.h"

namespace cpfit::gui {

/// The point of one (cp, sequence); null when the sweep does not have it.
[[nodiscard]] const SweepPointOrReason* point_of(const Sweep& sweep, std::int32_t cp, std::int64_t sequence);

/// Points of one degree that are legal, by length.
[[nodiscard]] std::vector<const SweepPointOrReason*> points_of(const Sweep& sweep, std::int32_t cp);

/// Shortest length at which CP = 1 does not fit and a higher degree does; 0 at no length shown.
[[nodiscard]] std::int64_t needed_at(const Sweep& sweep);
/// Shortest length at which a higher degree gives more tokens/s per GPU than CP = 1; 0 at no length shown.
[[nodiscard]] std::int64_t faster_at(const Sweep& sweep);

enum class CellState : std::uint8_t {
  kFeasible,  // fits with margin and hides its exchange within the budget
  kExposed,   // fits, exposes more than the budget
  kAtRisk,    // its upper bound reaches into the margin
  kTooMuch,   // does not fit
  kIllegal    // a rule forbids it
};
[[nodiscard]] CellState state_of(const SweepPointOrReason& point, const Requirements& requirements);
[[nodiscard]] QString name_of(CellState state);

/// One line of the picture per length: the degrees between floor and ceiling are a set, not always an interval.
struct LengthAnswer {
  std::int64_t sequence = 0;
  std::vector<std::int32_t> fit, hide, feasible;  // degrees
};
[[nodiscard]] LengthAnswer answer_at(const Sweep& sweep, std::int64_t sequence, const Requirements& requirements);

/// "At 128k tokens: memory asks for CP 4 or more, the exchange hides up to CP 16; CP 4, 8, 16 do both."; when none does: which
/// side fails, and that another lever is needed.
[[nodiscard]] QString sentence_of(const LengthAnswer& answer);

/// What was held: "tp=2, pp=1, dp=1, recompute=full, micro_batch=1".
[[nodiscard]] QString held_text(const Sweep& sweep);

}  // namespace cpfit::gui
