// What the Details dock says, as rich text: a sentence first, then figures with units, then the arithmetic. Pure.
#pragma once

#include <QString>
#include <optional>

#include "gui/study/live_estimate.h"
#include "gui/study/selection.h"

namespace cpfit::gui {

/// Where the time of a step goes: part, time, share; the parts sum to the step. Screen beside timeline where both are there.
[[nodiscard]] QString time_table(const Candidate& screen, const Candidate* timeline);

/// Of a tensor: its place, bytes, formula, source.
[[nodiscard]] QString tensor_text(const StageLedger& ledger, const SelectedTensor& tensor);

/// The busy links of the simulated step, or the one selected.
[[nodiscard]] QString link_text(const SimulatedStep& step, const SelectedLink& link);

/// Why the ring hides or does not: the inequality s/cp >= 2 (h_kv/h_q) F/B in the figures of this recipe. Empty at CP 1.
[[nodiscard]] QString ring_arithmetic(const Estimate& estimate);

struct DetailsInput {
  const Estimate& estimate;
  const SimulatedStep* step = nullptr;  // of this design; null: not simulated
  const Selected& selected;
  const StageLedger* ledger = nullptr;  // of the selected tensor's stage
  QString span;                         // what the timeline says of the selected span; empty: none
  bool why = false;                     // the arithmetic is unfolded
  QString result{};                     // what the results say of the chosen row, a line each; empty: none is chosen
};
[[nodiscard]] QString details_html(const DetailsInput& input);

}  // namespace cpfit::gui
