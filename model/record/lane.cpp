#include "model/record/lane.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace cpfit {

namespace {

/// Sums over [0, time), laid out as LaneSums::before's rows; added to `row` with `sign`.
void add_until(const SpanLane& lane, const LaneSums& sums, std::int64_t time, std::int64_t sign, Occupancy& into) {
  const std::size_t width = sums.kinds.size() + 1;
  const auto next = std::partition_point(lane.spans.begin(), lane.spans.end(), [&](const LaneSpan& s) { return s.start < time; });
  // All spans before `next` began earlier; only the last of them may reach beyond `time`.
  const std::size_t count = static_cast<std::size_t>(next - lane.spans.begin());
  const std::int64_t* row = &sums.before[count * width];
  for (std::size_t k = 0; k + 1 < width; ++k) into.by_kind[static_cast<std::size_t>(sums.kinds[k])] += sign * row[k];
  into.exposed += sign * row[width - 1];
  if (count == 0) return;
  const LaneSpan& last = lane.spans[count - 1];
  const std::int64_t beyond = std::max<std::int64_t>(0, last.end - time);
  into.by_kind[static_cast<std::size_t>(last.kind)] -= sign * beyond;
  into.exposed -= sign * std::min(beyond, last.exposed);  // exposed time is the span's tail
}

}  // namespace

std::string_view name_of(SpanKind kind) {
  switch (kind) {
    case SpanKind::kAttention:
      return "attention";
    case SpanKind::kCompute:
      return "compute";
    case SpanKind::kOptimizer:
      return "optimizer";
    case SpanKind::kCp:
      return "cp";
    case SpanKind::kTp:
      return "tp";
    case SpanKind::kPp:
      return "pp";
    case SpanKind::kDp:
      return "dp";
    case SpanKind::kForeign:
      return "other job";
    case SpanKind::kOther:
      break;
  }
  return "other";
}

std::string_view name_of(SpanPass pass) {
  switch (pass) {
    case SpanPass::kForward:
      return "forward";
    case SpanPass::kBackward:
      return "backward";
    case SpanPass::kUpdate:
      break;
  }
  return "update";
}

std::int64_t Occupancy::busy() const {
  std::int64_t sum = 0;
  for (const std::int64_t time : by_kind) sum += time;
  return sum;
}

LaneSums sums_of(const SpanLane& lane) {
  LaneSums sums;
  std::array<bool, kSpanKinds> seen{};
  for (const LaneSpan& span : lane.spans) seen[static_cast<std::size_t>(span.kind)] = true;
  std::array<std::size_t, kSpanKinds> column{};
  for (std::size_t kind = 0; kind < kSpanKinds; ++kind) {
    if (!seen[kind]) continue;
    column[kind] = sums.kinds.size();
    sums.kinds.push_back(static_cast<SpanKind>(kind));
  }
  const std::size_t width = sums.kinds.size() + 1;
  sums.before.assign((lane.spans.size() + 1) * width, 0);
  std::int64_t* row = sums.before.data();
  std::int64_t free_from = 0;
  for (const LaneSpan& span : lane.spans) {
    if (span.start < free_from || span.end < span.start) {
      std::fprintf(stderr, "cpfit: internal error: spans of lane %s of rank %d: [%lld, %lld) after %lld\n", lane.name.c_str(),
                   lane.rank, static_cast<long long>(span.start), static_cast<long long>(span.end),
                   static_cast<long long>(free_from));
      std::abort();
    }
    free_from = span.end;
    std::copy_n(row, width, row + width);
    row += width;
    row[column[static_cast<std::size_t>(span.kind)]] += span.end - span.start;
    row[width - 1] += span.exposed;
  }
  return sums;
}

Occupancy occupancy(const SpanLane& lane, const LaneSums& sums, std::int64_t from, std::int64_t to) {
  Occupancy result;
  add_until(lane, sums, to, 1, result);
  add_until(lane, sums, from, -1, result);
  return result;
}

std::vector<Occupancy> occupancy_columns(const SpanLane& lane, const LaneSums& sums, std::int64_t from, std::int64_t to,
                                         std::size_t columns) {
  std::vector<Occupancy> result(columns);
  // width = quotient * columns + rest: bounds without a product that could overflow (a step has up to 2^50 ps).
  const std::int64_t count = static_cast<std::int64_t>(columns);
  const std::int64_t quotient = count == 0 ? 0 : (to - from) / count;
  const std::int64_t rest = count == 0 ? 0 : (to - from) % count;
  std::int64_t left = from;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t right = from + quotient * (i + 1) + rest * (i + 1) / count;
    result[static_cast<std::size_t>(i)] = occupancy(lane, sums, left, right);
    left = right;
  }
  return result;
}

std::size_t first_span_after(const SpanLane& lane, std::int64_t time) {
  const auto found = std::partition_point(lane.spans.begin(), lane.spans.end(), [&](const LaneSpan& s) { return s.end <= time; });
  return static_cast<std::size_t>(found - lane.spans.begin());
}

std::ptrdiff_t span_at(const SpanLane& lane, std::int64_t time) {
  const std::size_t index = first_span_after(lane, time);
  return index < lane.spans.size() && lane.spans[index].start <= time ? static_cast<std::ptrdiff_t>(index) : -1;
}

}  // namespace cpfit
