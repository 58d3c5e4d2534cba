#include "gui/timeline/lane_raster.h"

#include <algorithm>

#include "gui/look/hatch.h"

namespace cpfit::gui {

namespace {

/// The first span that starts at or after `time`, at `from` or later; galloping, because the next bound is near.
std::size_t next_start(const std::vector<LaneSpan>& spans, std::size_t from, std::int64_t time) {
  std::size_t low = from, step = 1;
  while (low + step < spans.size() && spans[low + step].start < time) {
    low += step;
    step *= 2;
  }
  const std::size_t high = std::min(spans.size(), low + step + 1);
  const auto found =
      std::partition_point(spans.begin() + static_cast<std::ptrdiff_t>(low), spans.begin() + static_cast<std::ptrdiff_t>(high),
                           [&](const LaneSpan& s) { return s.start < time; });
  return static_cast<std::size_t>(found - spans.begin());
}

/// Time by kind, then exposed, in [0, time); `next` is the first span that starts at or after `time`.
void sums_until(const SpanLane& lane, const LaneSums& sums, std::size_t next, std::int64_t time, std::int64_t* out) {
  const std::size_t width = sums.kinds.size() + 1;
  std::copy_n(&sums.before[next * width], width, out);
  if (next == 0) return;
  const LaneSpan& last = lane.spans[next - 1];
  const std::int64_t beyond = last.end - time;
  if (beyond <= 0) return;
  std::size_t column = 0;
  while (sums.kinds[column] != last.kind) ++column;
  out[column] -= beyond;
  out[width - 1] -= std::min(beyond, last.exposed);  // exposed time is the span's tail
}

std::uint32_t channel(Pixel a, Pixel b, std::uint32_t share, unsigned shift) {
  const std::uint32_t x = (a >> shift) & 255U, y = (b >> shift) & 255U;
  return ((x * (255U - share) + y * share + 127U) / 255U) << shift;
}

/// Busy columns never fade to nothing: a fifth of the hue stays for a single nanosecond.
std::uint32_t visible_share(std::int64_t busy, std::int64_t width) {
  if (busy <= 0 || width <= 0) return 0;
  const double share = std::min(1.0, static_cast<double>(busy) / static_cast<double>(width));
  return static_cast<std::uint32_t>(51.0 + 204.0 * share + 0.5);
}

int band(std::int64_t part, std::int64_t width, int height, int least) {
  if (part <= 0 || width <= 0) return 0;
  const int rows = static_cast<int>(static_cast<double>(part) / static_cast<double>(width) * height + 0.5);
  return std::clamp(rows, std::min(least, height), height);
}

}  // namespace

std::vector<std::int64_t> column_bounds(TimeWindow window, std::size_t columns) {
  std::vector<std::int64_t> bounds(columns + 1, window.from);
  const std::int64_t count = static_cast<std::int64_t>(columns);
  if (count == 0) return bounds;
  const std::int64_t quotient = window.length() / count, rest = window.length() % count;
  for (std::int64_t i = 1; i <= count; ++i) bounds[static_cast<std::size_t>(i)] = window.from + quotient * i + rest * i / count;
  return bounds;
}

void raster_columns(const SpanLane& lane, const LaneSums& sums, std::span<const std::int64_t> bounds,
                    std::span<RasterColumn> out) {
  std::fill(out.begin(), out.end(), RasterColumn{});
  if (bounds.size() < 2 || lane.spans.empty()) return;
  const std::size_t width = sums.kinds.size() + 1;
  std::array<std::int64_t, kSpanKinds + 1> left{}, right{};
  std::size_t next = next_start(lane.spans, 0, bounds[0]);
  sums_until(lane, sums, next, bounds[0], left.data());
  for (std::size_t i = 0; i < out.size(); ++i) {
    next = next_start(lane.spans, next, bounds[i + 1]);
    sums_until(lane, sums, next, bounds[i + 1], right.data());
    RasterColumn& column = out[i];
    std::int64_t most = 0;
    for (std::size_t k = 0; k + 1 < width; ++k) {
      const std::int64_t time = right[k] - left[k];
      column.busy += time;
      if (time > most) {
        most = time;
        column.kind = sums.kinds[k];
      }
    }
    column.exposed = right[width - 1] - left[width - 1];
    std::swap(left, right);
  }
}

void add_stalls(std::span<const std::int64_t> bounds, std::span<const std::vector<RasterColumn>> communication,
                std::span<RasterColumn> compute) {
  for (std::size_t i = 0; i < compute.size(); ++i) {
    std::int64_t exposed = 0;
    for (const std::vector<RasterColumn>& lane : communication) exposed += lane[i].exposed;
    compute[i].stalled = std::min(exposed, bounds[i + 1] - bounds[i] - compute[i].busy);
  }
}

Pixel blended(Pixel a, Pixel b, std::uint32_t share) {
  return 0xff000000U | channel(a, b, share, 16) | channel(a, b, share, 8) | channel(a, b, share, 0);
}

void paint_columns(const PixelBlock& image, int top, int height, std::span<const RasterColumn> columns,
                   std::span<const std::int64_t> bounds, const RasterPalette& palette, int scale) {
  const int first = std::max(0, top), last = std::min(image.height, top + height);
  const int width = std::min(image.width, static_cast<int>(columns.size()));
  if (first >= last) return;
  for (int x = 0; x < width; ++x) {
    const RasterColumn& column = columns[static_cast<std::size_t>(x)];
    if (column.busy <= 0 && column.stalled <= 0) continue;
    const std::int64_t length = bounds[static_cast<std::size_t>(x) + 1] - bounds[static_cast<std::size_t>(x)];
    const Pixel hue = palette.kind[static_cast<std::size_t>(column.kind)];
    const Pixel fill = blended(palette.background, hue, visible_share(column.busy, length));
    const int exposed = band(column.exposed, length, height, 3 * scale);
    const int stalled = band(column.stalled, length, height / 4, scale);
    const int exposed_from = top + height - exposed;
    const int stall_from = top + height - stalled;
    for (int y = first; y < last; ++y) {
      Pixel& pixel = image.row(y)[x];
      if (column.busy > 0) pixel = fill;
      if (y >= exposed_from) {
        // The band's edge and its lines are dark, so that it reads without its colour.
        pixel = y < exposed_from + scale || inks(Hatch::kExposed, x / scale, (y - top) / scale) ? palette.hatch : palette.exposed;
      }
      if (y >= stall_from) pixel = palette.stall;
    }
  }
}

}  // namespace cpfit::gui
