// The lanes' part of the timeline as pixels: exact occupancy everywhere, and on top of it every span that is wide enough to be
// told apart, with its hatches. Pure: an image is someone else's memory.
#pragma once

#include <vector>

#include "gui/timeline/lane_raster.h"
#include "gui/timeline/timeline_hit.h"
#include "gui/timeline/timeline_layout.h"

namespace cpfit::gui {

/// A span with room for words, in pixels of the layout.
struct LabelPlace {
  SpanRef span;
  double left = 0, right = 0;
  int top = 0, height = 0;
  Pixel ground = 0;  // what the words stand on
};

struct LanesPicture {
  const StepPicture& picture;
  const TimelineLayout& layout;
  TimeWindow window;
  int scroll = 0;
  int scale = 1;          // pixels of the image per pixel of the layout
  bool critical = false;  // underline the critical path
};

/// Narrower spans stay part of the occupancy.
inline constexpr double kSpanPixels = 4;
inline constexpr double kLabelPixels = 40;

/// Fills the image (width: columns, height: the lanes' area) and lists the spans that have room for a label.
[[nodiscard]] std::vector<LabelPlace> paint_lanes(const PixelBlock& image, const LanesPicture& lanes,
                                                  const RasterPalette& palette);

/// One rank's lanes below each other over the whole height: the overview. `lanes`: as paint_lanes.
void paint_overview(const PixelBlock& image, const StepPicture& picture, std::int32_t rank, TimeWindow window,
                    const RasterPalette& palette, int scale);

}  // namespace cpfit::gui
