// Why one recipe is better than another: every input in which they differ, whether they may be compared as equals, and the
// difference of step time and of peak memory by part, in whole picoseconds and bytes so that the parts sum exactly. Pure.
#pragma once

#include <QString>
#include <QStringList>
#include <cstdint>
#include <optional>
#include <vector>

#include "gui/study/design.h"
#include "gui/study/simulator.h"
#include "model/record/candidate.h"

namespace cpfit::gui {

/// One of the two that are compared.
struct ComparedSide {
  QString name;  // "Baseline", "CP = 1 control"
  Design design;
  Candidate candidate;
};

struct InputDifference {
  QString group, name;  // "Recipe", "CP"
  QString a, b;
  bool unequal = false;  // of those that an equal comparison holds: model, token batch, recompute, hardware
  bool policy = false;   // changes memory by another choice than the degrees
};
/// Question first, then recipe; empty: both are the same.
[[nodiscard]] std::vector<InputDifference> input_differences(const ComparedSide& a, const ComparedSide& b);

/// Why the two are no equal comparison, one sentence each: another model, effective token batch, recompute policy, hardware,
/// rates. Empty: they are one.
[[nodiscard]] QStringList unequal_reasons(const ComparedSide& a, const ComparedSide& b);

enum class PartKind : std::uint8_t { kTotal, kPart };
/// A row of a waterfall. A part goes from `from` to `to`; a total stands on zero. Picoseconds or bytes.
struct WaterfallRow {
  QString name;
  PartKind kind = PartKind::kPart;
  std::int64_t from = 0, to = 0;
  std::int64_t a = 0, b = 0;  // the part on either side
  int color = 0;              // a SpanKind or a Component
  bool exposed = false;       // hatched
  [[nodiscard]] std::int64_t change() const { return b - a; }
};

/// Parts whose figure is zero on both sides are left out. First and last row are the totals of A and B.
[[nodiscard]] std::vector<WaterfallRow> time_waterfall(const ComparedSide& a, const ComparedSide& b);
[[nodiscard]] std::vector<WaterfallRow> memory_waterfall(const ComparedSide& a, const ComparedSide& b);

/// Rounds each part to a whole unit; what the rounding leaves over goes to the largest part, where it is least, so that they sum
/// to the rounded sum. Parts must be finite.
[[nodiscard]] std::vector<std::int64_t> whole_parts(const std::vector<double>& parts);

/// "B is 0.32 s faster (6.4 %) and needs 4.1 GiB more; most of it is exposed CP, −0.41 s."
[[nodiscard]] QString comparison_sentence(const ComparedSide& a, const ComparedSide& b);

[[nodiscard]] Seconds seconds_of(std::int64_t picoseconds);

}  // namespace cpfit::gui
