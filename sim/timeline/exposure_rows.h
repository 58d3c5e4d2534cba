// Sums of a rank's communication by axis, layer and pass. Internal to exposure.
#pragma once

#include <vector>

#include "sim/timeline/exposure.h"
#include "sim/timeline/kernel_stretch.h"
#include "sim/timeline/short_history.h"

namespace cpfit::timeline {

class ExposureRows {
 public:
  /// The row of a transfer of the full history, made on first use. The reference holds until the next call.
  [[nodiscard]] ExposureRow& row(const History& history, const Instance& transfer);

  /// The order in which transfers are summed: of start, then end.
  [[nodiscard]] static bool in_time(const RankSpan& a, const RankSpan& b) {
    if (a.start != b.start) return a.start < b.start;
    return a.end != b.end ? a.end < b.end : a.slot < b.slot;
  }

  /// All rows with counts, bytes and busy time of `transfers` (one per slot on the rank, of the shortened
  /// history, in any order); empties the sums.
  [[nodiscard]] std::vector<ExposureRow> take(std::vector<RankSpan> transfers, const ShortHistory& history, std::int32_t rank);

 private:
  std::vector<std::int32_t> index_;  // (axis, layer + 1, pass), layer slowest -> row, -1 where none
  std::vector<ExposureRow> rows_;
};

}  // namespace cpfit::timeline
