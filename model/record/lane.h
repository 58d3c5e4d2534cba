// A lane of spans: what one stream of one rank did, in order, packed for millions. Made by sim/timeline, stored by db, drawn by
// gui. All times are whole picoseconds from the beginning of the step.
//
// Spans of a lane do not overlap and ascend. Running sums (LaneSums) make the time of every kind within any range the difference
// of two look-ups, so that a picture of any zoom is exact: nothing is sampled away.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cpfit {

/// What fills time on a lane: one hue each.
enum class SpanKind : std::uint8_t { kAttention, kCompute, kOptimizer, kCp, kTp, kPp, kDp, kForeign /* another job */, kOther };
inline constexpr std::size_t kSpanKinds = 9;
[[nodiscard]] std::string_view name_of(SpanKind kind);  // "attention", "compute", ... "cp", ... "other job", "other"

enum class SpanPass : std::uint8_t { kForward, kBackward, kUpdate };
[[nodiscard]] std::string_view name_of(SpanPass pass);  // "forward", "backward", "update"

struct LaneSpan {
  std::int64_t start = 0, end = 0;  // [start, end)
  std::int64_t posted = 0;          // <= start: from then on it had its lane, and its share of the GPU while waiting for its peer
  std::int64_t exposed = 0;         // communication: its last `exposed` picoseconds kept this rank from computing
  double bytes = 0;                 // communication
  std::int32_t activity = 0;        // of the simulated program; with `copy` the span's identity
  std::int32_t copy = 0;            // of a repeated block of layers, counting every repetition; 0 outside
  std::int32_t name = 0;            // into Timeline::names
  std::int32_t peer = -1;           // message: rank at the other end, -1 otherwise
  std::int16_t layer = -1;          // -1 where none
  std::int16_t micro_batch = -1;    // -1 where none
  std::int8_t chunk = 0;            // virtual stage on the rank
  bool sends = false;               // message: this lane is the sender's
  SpanKind kind = SpanKind::kOther;
  SpanPass pass = SpanPass::kForward;
  friend bool operator==(const LaneSpan&, const LaneSpan&) = default;
};
static_assert(sizeof(LaneSpan) == 64);

struct SpanLane {
  std::int32_t rank = 0;
  std::string name;  // "compute", "cp send"
  std::vector<LaneSpan> spans;
  friend bool operator==(const SpanLane&, const SpanLane&) = default;
};

struct Timeline {
  std::int64_t step = 0;  // picoseconds
  std::vector<std::string> names;
  std::vector<SpanLane> lanes;  // by rank, then in the order of the program
  friend bool operator==(const Timeline&, const Timeline&) = default;
};

/// Time by kind within a range, and how much of it was exposed communication.
struct Occupancy {
  std::array<std::int64_t, kSpanKinds> by_kind{};
  std::int64_t exposed = 0;
  [[nodiscard]] std::int64_t busy() const;
  friend bool operator==(const Occupancy&, const Occupancy&) = default;
};

/// Running sums of one lane. Holds for the spans it was built from, in their order.
struct LaneSums {
  std::vector<SpanKind> kinds;       // those that occur on the lane, ascending
  std::vector<std::int64_t> before;  // (spans + 1, kinds + 1): time by kind, then exposed time, in all earlier spans
};
[[nodiscard]] LaneSums sums_of(const SpanLane& lane);  // aborts when spans overlap or do not ascend

/// Exact, for any from <= to; two binary searches.
[[nodiscard]] Occupancy occupancy(const SpanLane& lane, const LaneSums& sums, std::int64_t from, std::int64_t to);

/// Picture columns: column i of `columns` covers [from + i*(to-from)/columns, from + (i+1)*(to-from)/columns), bounds rounded
/// down, so that the columns' sums are the range's sum.
[[nodiscard]] std::vector<Occupancy> occupancy_columns(const SpanLane& lane, const LaneSums& sums, std::int64_t from,
                                                       std::int64_t to, std::size_t columns);

/// Index of the span with start <= time < end; -1 when the lane is idle then.
[[nodiscard]] std::ptrdiff_t span_at(const SpanLane& lane, std::int64_t time);
/// Index of the first span that ends after `time`; spans.size() when there is none.
[[nodiscard]] std::size_t first_span_after(const SpanLane& lane, std::int64_t time);

}  // namespace cpfit
