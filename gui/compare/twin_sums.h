// Two steps on one time axis, both beginning at 0: what a stretch of it holds on either side, and the difference. Whole
// picoseconds from running sums, so that neighbouring stretches add up. Pure.
#pragma once

#include <QString>
#include <cstdint>
#include <vector>

#include "gui/timeline/range_sums.h"

namespace cpfit::gui {

/// A stretch of a step: as range_sums, but what lies behind the step's end is no idle time of it.
[[nodiscard]] RangeSums sums_inside(const StepPicture& picture, std::int32_t rank, TimeWindow range);

struct TwinRow {
  QString name;
  std::int64_t a = 0, b = 0;  // picoseconds, or bytes
  bool bytes = false;
  [[nodiscard]] std::int64_t change() const { return b - a; }
  [[nodiscard]] QString text(std::int64_t value) const;  // "1.28 ms"
  [[nodiscard]] QString change_text() const;             // "−0.3 ms"
};
/// The step's part of the stretch, then what fills it: computing, waiting for communication, idle; then communication behind
/// computing, and the bytes moved. The second to the fourth add up to the first where one compute lane runs at a time.
[[nodiscard]] std::vector<TwinRow> twin_rows(const RangeSums& a, const RangeSums& b);

}  // namespace cpfit::gui
