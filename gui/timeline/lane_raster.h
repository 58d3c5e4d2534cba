// A lane as pixel columns, exact at any zoom: of every column the time by kind and how much of it was exposed, from the lane's
// running sums. Nothing is sampled away: the columns add up to the window.
//
// A column's colour: hue of the kind with most time in it, mixed with the background by the busy share; a hatched band from below
// as high as its exposed share. A compute lane shows beside it where it stood still because this rank's communication was
// exposed.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "gui/timeline/time_window.h"
#include "model/record/lane.h"

namespace cpfit::gui {

struct RasterColumn {
  SpanKind kind = SpanKind::kOther;  // with most time; of equals the first of the enumeration
  std::int64_t busy = 0;             // picoseconds within the column
  std::int64_t exposed = 0;          // of busy
  std::int64_t stalled = 0;          // idle while communication of the same rank was exposed (compute lanes)
  friend bool operator==(const RasterColumn&, const RasterColumn&) = default;
};

/// Bounds of columns as occupancy_columns has them: (columns + 1) instants.
[[nodiscard]] std::vector<std::int64_t> column_bounds(TimeWindow window, std::size_t columns);

/// One sweep over the lane with galloping look-ups; the same sums as occupancy_columns. Into `out` (columns).
void raster_columns(const SpanLane& lane, const LaneSums& sums, std::span<const std::int64_t> bounds,
                    std::span<RasterColumn> out);

/// Fills `stalled` of a compute lane from the columns of the rank's communication lanes: what they exposed together, at most what
/// the compute lane was idle.
void add_stalls(std::span<const std::int64_t> bounds, std::span<const std::vector<RasterColumn>> communication,
                std::span<RasterColumn> compute);

/// 0xAARRGGBB.
using Pixel = std::uint32_t;
struct RasterPalette {
  std::array<Pixel, kSpanKinds> kind{};
  Pixel background = 0xffffffff;
  Pixel exposed = 0xffc44e00, hatch = 0xff000000, stall = 0xffc44e00, critical = 0xff000000;
};

/// Rows of pixels of someone else's image.
struct PixelBlock {
  Pixel* pixels = nullptr;
  std::ptrdiff_t stride = 0;  // pixels from one row to the next
  int width = 0, height = 0;
  [[nodiscard]] Pixel* row(int y) const { return pixels + y * stride; }
};

/// Paints columns 0..width-1 over the rows top..top+height-1, which are the caller's to clear. `first_x` and `top` anchor the
/// hatch, so that it does not crawl while a view scrolls; `scale` is the pixels of the screen per pixel of the layout.
void paint_columns(const PixelBlock& image, int top, int height, std::span<const RasterColumn> columns,
                   std::span<const std::int64_t> bounds, const RasterPalette& palette, int scale);

/// a with `share` (0..255) of b.
[[nodiscard]] Pixel blended(Pixel a, Pixel b, std::uint32_t share);

}  // namespace cpfit::gui
