#include "calibrate/read/trace_overlap.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace cpfit {

namespace {

/// A border of an interval: how many works of each class run from here on.
struct Border {
  std::int64_t at = 0;
  std::int8_t change = 0;
  std::uint8_t work = 0;
};

double share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

}  // namespace

TraceOverlap overlap_of(const TracedDevice& device) {
  TraceOverlap overlap;
  std::vector<Border> borders;
  borders.reserve(2 * device.spans.size());
  for (const DeviceSpan& span : device.spans) {
    borders.push_back({span.start, 1, static_cast<std::uint8_t>(span.work)});
    borders.push_back({span.end, -1, static_cast<std::uint8_t>(span.work)});
    overlap.communication_kernels += span.work == DeviceWork::kCommunication ? 1 : 0;
  }
  overlap.works = static_cast<std::int64_t>(device.spans.size());
  if (borders.empty()) return overlap;
  std::sort(borders.begin(), borders.end(), [](const Border& a, const Border& b) { return a.at < b.at; });
  std::array<std::int64_t, 3> running{};
  std::int64_t since = borders.front().at;
  for (const Border& border : borders) {
    const std::int64_t lasted = border.at - since;
    const bool compute = running[0] > 0, communication = running[1] > 0, copy = running[2] > 0;
    overlap.compute += compute ? lasted : 0;
    overlap.communication += communication ? lasted : 0;
    overlap.copy += copy ? lasted : 0;
    overlap.overlapped += compute && communication ? lasted : 0;
    overlap.exposed += communication && !compute ? lasted : 0;
    overlap.idle += !compute && !communication && !copy ? lasted : 0;
    running[border.work] += border.change;
    since = border.at;
  }
  overlap.span = borders.back().at - borders.front().at;
  return overlap;
}

std::string overlap_remark(const TraceOverlap& overlap) {
  if (overlap.communication == 0) return {};
  constexpr double kBusy = 0.8, kHidden = 0.5;
  const double busy = 1.0 - share(overlap.idle, overlap.span);
  const double hidden = share(overlap.overlapped, overlap.communication);
  if (busy >= kBusy && hidden < kHidden) {
    return fmt::format(
        "the GPU is busy {:.0f} % of the time, but only {:.1f} % of its communication runs beside compute: high "
        "utilisation is not overlap",
        100.0 * busy, 100.0 * hidden);
  }
  if (share(overlap.idle, overlap.span) > 0.5) {
    return fmt::format(
        "the GPU is idle {:.0f} % of the time: the host or a peer holds it up, and waiting inside communication kernels "
        "counts as communication here",
        100.0 * share(overlap.idle, overlap.span));
  }
  return {};
}

}  // namespace cpfit
