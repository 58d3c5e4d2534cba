// What a focus range holds. Live figures come from running sums in two look-ups a lane, so they follow a drag at any size; the
// table of kinds walks the spans of the range.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "gui/timeline/step_picture.h"
#include "gui/timeline/time_window.h"

namespace cpfit::gui {

/// One rank over a range, exact to the picosecond. compute + exposed + idle is the length where one compute lane runs at a time;
/// kernels of two compute lanes at once are counted once (`compute` is then what either of them was busy).
struct RangeSums {
  TimeWindow range;
  std::int64_t compute = 0;        // a compute lane was busy
  std::int64_t communication = 0;  // over all communication lanes, each counted by itself
  std::int64_t exposed = 0;        // of communication: it kept the rank from computing
  std::int64_t idle = 0;           // neither computing nor waiting for communication
  double bytes = 0;                // of communication; transfers that the range cuts count by their share of time
  [[nodiscard]] std::int64_t hidden() const { return communication - exposed; }
};
[[nodiscard]] RangeSums range_sums(const StepPicture& picture, std::int32_t rank, TimeWindow range);

/// Spans that touch a range, by kind.
struct KindSums {
  SpanKind kind = SpanKind::kOther;
  std::int64_t count = 0;
  std::int64_t sum = 0, exposed = 0;  // of the parts inside the range
  std::int64_t least = 0, most = 0;   // of whole spans
  double bytes = 0;                   // of the parts inside
  [[nodiscard]] double mean() const { return count > 0 ? static_cast<double>(sum) / static_cast<double>(count) : 0.0; }
};
/// Over the given lanes, in the order of the enumeration; kinds that do not occur are left out.
[[nodiscard]] std::vector<KindSums> kind_sums(const StepPicture& picture, const std::vector<std::int32_t>& lanes,
                                              TimeWindow range);

}  // namespace cpfit::gui
