#include "gui/timeline/lanes_image.h"

#include <algorithm>
#include <map>

#include "gui/look/hatch.h"

namespace cpfit::gui {

namespace {

constexpr int kInset = 2;  // pixels of the layout above and below a bar

class LanesPainter {
 public:
  LanesPainter(const PixelBlock& image, const LanesPicture& lanes, const RasterPalette& palette)
      : image_(image),
        lanes_(lanes),
        palette_(palette),
        bounds_(column_bounds(lanes.window, static_cast<std::size_t>(image.width))),
        scale_{lanes.window, 0, static_cast<double>(image.width)},
        column_(static_cast<std::size_t>(image.width)) {}

  std::vector<LabelPlace> paint() {
    for (int y = 0; y < image_.height; ++y) std::fill_n(image_.row(y), image_.width, palette_.background);
    const int height = image_.height / lanes_.scale;
    // Scrolled rows first: pinned ones lie over what scrolls below them.
    for (std::size_t r = lanes_.layout.pinned; r < lanes_.layout.rows.size(); ++r) row(r, lanes_.layout.pinned_height, height);
    for (std::size_t r = 0; r < lanes_.layout.pinned; ++r) row(r, 0, std::min(height, lanes_.layout.pinned_height));
    return std::move(labels_);
  }

 private:
  void row(std::size_t index, int clip_top, int clip_bottom) {
    const TimelineRow& row = lanes_.layout.rows[index];
    const int top = lanes_.layout.top_of(index, lanes_.scroll);
    if (top + row.height <= clip_top || top >= clip_bottom) return;
    clip_top_ = clip_top * lanes_.scale;
    clip_bottom_ = clip_bottom * lanes_.scale;
    if (row.kind == RowKind::kLane) {
      lane(row.lane, row.rank, top + kInset, row.height - 2 * kInset, true);
    } else if (row.kind == RowKind::kRank && row.collapsed) {
      // A collapsed rank shows its first compute lane, stalls and all.
      const std::vector<std::int32_t>& own = lanes_.picture.ranks[static_cast<std::size_t>(row.rank)].lanes;
      if (!own.empty()) lane(own.front(), row.rank, top + kInset, row.height - 2 * kInset, true);
    }
  }

  [[nodiscard]] PixelBlock clipped() const {
    PixelBlock part = image_;
    part.pixels = image_.row(clip_top_);
    part.height = clip_bottom_ - clip_top_;
    return part;
  }

  void lane(std::int32_t index, std::int32_t rank, int top, int height, bool labels) {
    const SpanLane& own = lanes_.picture.lane(index);
    raster_columns(own, lanes_.picture.sums[static_cast<std::size_t>(index)], bounds_, column_);
    if (family_of(own) == LaneFamily::kCompute) stalls(rank, index);
    paint_columns(clipped(), top * lanes_.scale - clip_top_, height * lanes_.scale, column_, bounds_, palette_, lanes_.scale);
    wide_spans(index, top, height, labels);
  }

  void stalls(std::int32_t rank, std::int32_t compute) {
    const auto known = exposed_.find(rank);
    if (known == exposed_.end()) {
      std::vector<std::vector<RasterColumn>> communication;
      for (const std::int32_t other : lanes_.picture.ranks[static_cast<std::size_t>(rank)].lanes) {
        const SpanLane& own = lanes_.picture.lane(other);
        const LaneSums& sums = lanes_.picture.sums[static_cast<std::size_t>(other)];
        if (family_of(own) == LaneFamily::kCompute || sums.before.back() == 0) continue;
        communication.emplace_back(column_.size());
        raster_columns(own, sums, bounds_, communication.back());
      }
      exposed_.emplace(rank, std::move(communication));
    }
    // A second compute lane is idle by nature; only the first one waits.
    const std::vector<std::int32_t>& lanes = lanes_.picture.ranks[static_cast<std::size_t>(rank)].lanes;
    if (!lanes.empty() && lanes.front() == compute) add_stalls(bounds_, exposed_.at(rank), column_);
  }

  /// Walks the spans of the window, leaping over those that are too narrow.
  void wide_spans(std::int32_t index, int top, int height, bool labels) {
    const std::vector<LaneSpan>& spans = lanes_.picture.lane(index).spans;
    const double least = kSpanPixels * lanes_.scale;
    std::size_t s = first_span_after(lanes_.picture.lane(index), lanes_.window.from);
    while (s < spans.size() && spans[s].start < lanes_.window.to) {
      const double left = scale_.x_of(spans[s].start), right = scale_.x_of(spans[s].end);
      if (right - left < least) {
        // The next one that reaches beyond the pixel after this one.
        const std::int64_t beyond = scale_.time_at(std::max(left, 0.0) + 1);
        const std::size_t next = first_span_after(lanes_.picture.lane(index), std::max(spans[s].end, beyond));
        s = std::max(s + 1, next);
        continue;
      }
      wide_span({index, s}, left, right, top, height);
      if (labels && right - left >= kLabelPixels * lanes_.scale) {
        const Pixel ground = palette_.kind[static_cast<std::size_t>(spans[s].kind)];
        const double exposed = scale_.x_of(spans[s].end - spans[s].exposed);
        const double end = spans[s].exposed > 0 && exposed - left >= kLabelPixels * lanes_.scale ? exposed : right;
        labels_.push_back({{index, s}, left / lanes_.scale, end / lanes_.scale, top, height, ground});
      }
      ++s;
    }
  }

  void wide_span(SpanRef ref, double left, double right, int top, int height) {
    const LaneSpan& span = span_of(lanes_.picture, ref);
    const int x0 = std::max(0, static_cast<int>(left + 0.5)), x1 = std::min(image_.width, static_cast<int>(right + 0.5));
    const int y0 = std::max(clip_top_, top * lanes_.scale), y1 = std::min(clip_bottom_, (top + height) * lanes_.scale);
    const Pixel hue = palette_.kind[static_cast<std::size_t>(span.kind)];
    const Pixel soft = blended(hue, palette_.background, 70);
    const Pixel edge = blended(hue, palette_.hatch, 110);
    const bool recomputed = lanes_.picture.marked(ref.lane, ref.span, kRecomputed);
    const bool critical = lanes_.critical && lanes_.picture.marked(ref.lane, ref.span, kCritical);
    const double tail = span.exposed > 0 ? scale_.x_of(span.end - span.exposed) : right + 1;
    const int exposed_from = span.exposed > 0 ? std::min(static_cast<int>(tail + 0.5), x1 - lanes_.scale) : x1 + 1;
    const int frame_top = top * lanes_.scale, frame_bottom = (top + height) * lanes_.scale - 1;
    const int line = lanes_.scale;
    for (int y = y0; y < y1; ++y) {
      Pixel* pixels = image_.row(y);
      const bool rim = y < frame_top + line || y > frame_bottom - line;
      const int hatch_y = (y - frame_top) / lanes_.scale;
      for (int x = x0; x < x1; ++x) {
        Pixel pixel = hue;
        if (recomputed && inks(Hatch::kRecompute, x / lanes_.scale, hatch_y)) pixel = soft;
        if (x >= exposed_from) {
          const bool outline = rim || x < exposed_from + line || x >= x1 - line;
          pixel = outline || inks(Hatch::kExposed, x / lanes_.scale, hatch_y) ? palette_.hatch : palette_.exposed;
        } else if (x >= x1 - line) {
          pixel = edge;  // neighbours stay two
        }
        if (critical && y > frame_bottom - 3 * line)
          pixel = y > frame_bottom - 2 * line ? palette_.critical : palette_.background;
        pixels[x] = pixel;
      }
    }
    waiting(span, left, top, height);
  }

  /// From the posting to the start the lane was taken, waiting for its peer: a thin line.
  void waiting(const LaneSpan& span, double left, int top, int height) {
    if (span.posted >= span.start) return;
    const int x0 = std::max(0, static_cast<int>(scale_.x_of(span.posted) + 0.5));
    const int x1 = std::min(image_.width, static_cast<int>(left + 0.5));
    const int middle = (top + height / 2) * lanes_.scale;
    for (int y = middle; y < middle + lanes_.scale; ++y) {
      if (y < clip_top_ || y >= clip_bottom_) continue;
      for (int x = x0; x < x1; ++x) {
        if ((x / lanes_.scale) % 3 != 0) image_.row(y)[x] = palette_.kind[static_cast<std::size_t>(span.kind)];
      }
    }
  }

  const PixelBlock& image_;
  const LanesPicture& lanes_;
  const RasterPalette& palette_;
  std::vector<std::int64_t> bounds_;
  TimeScale scale_;
  std::vector<RasterColumn> column_;
  std::map<std::int32_t, std::vector<std::vector<RasterColumn>>> exposed_;  // of a rank's communication lanes
  std::vector<LabelPlace> labels_;
  int clip_top_ = 0, clip_bottom_ = 0;
};

}  // namespace

std::vector<LabelPlace> paint_lanes(const PixelBlock& image, const LanesPicture& lanes, const RasterPalette& palette) {
  if (image.width <= 0 || image.height <= 0) return {};
  return LanesPainter(image, lanes, palette).paint();
}

void paint_overview(const PixelBlock& image, const StepPicture& picture, std::int32_t rank, TimeWindow window,
                    const RasterPalette& palette, int scale) {
  for (int y = 0; y < image.height; ++y) std::fill_n(image.row(y), image.width, palette.background);
  if (rank < 0 || static_cast<std::size_t>(rank) >= picture.ranks.size() || image.width <= 0) return;
  const std::vector<std::int32_t>& lanes = picture.ranks[static_cast<std::size_t>(rank)].lanes;
  if (lanes.empty()) return;
  const std::vector<std::int64_t> bounds = column_bounds(window, static_cast<std::size_t>(image.width));
  std::vector<std::vector<RasterColumn>> columns;
  for (const std::int32_t lane : lanes) {
    columns.emplace_back(static_cast<std::size_t>(image.width));
    raster_columns(picture.lane(lane), picture.sums[static_cast<std::size_t>(lane)], bounds, columns.back());
  }
  // The first compute lane counts as much as all others together: they are thin lines, it is what must be busy.
  const int first = lanes.size() > 1 ? image.height / 2 : image.height;
  const int rest = lanes.size() > 1 ? (image.height - first) / static_cast<int>(lanes.size() - 1) : 0;
  int top = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const int height = i == 0 ? first : std::max(1, rest);
    if (top + height > image.height) break;
    paint_columns(image, top, std::max(1, height - (height > 4 * scale ? scale : 0)), columns[i], bounds, palette, scale);
    top += height;
  }
}

}  // namespace cpfit::gui
