// The step timeline's own pictures: lanes and overview kept until what they show changes, and pictures for export.
#include <QPainter>
#include <QScrollBar>
#include <algorithm>
#include <cmath>

#include "gui/timeline/timeline_paint.h"
#include "gui/timeline/timeline_view.h"

namespace cpfit::gui {

QImage TimelineView::image(double ratio, bool whole_step) const {
  // Painted by a second view of the same state, so that this one keeps its pictures.
  TimelineView other;
  other.setPalette(palette());
  other.setFont(font());
  other.resize(size());
  other.predicted_ = predicted_;
  other.recorded_ = recorded_;
  other.tracks_ = tracks_;
  other.tracks_chosen_ = true;
  other.state_ = state_;
  other.mode_ = mode_;
  other.sentence_ = sentence_;
  other.critical_ = critical_;
  other.export_ratio_ = ratio;
  if (whole_step) other.state_.fit_all();
  other.showMode();
  other.place();
  other.scroll_->setValue(scroll());
  QImage image((QSizeF(size()) * ratio).toSize(), QImage::Format_RGB32);
  image.setDevicePixelRatio(ratio);
  QPainter painter(&image);
  other.image_stale_ = other.overview_stale_ = true;
  TimelinePainter(other, painter).paint();
  return image;
}

void TimelineView::refreshImage() const {
  const StepPicture* picture = state_.picture();
  const double ratio = export_ratio_ > 0 ? export_ratio_ : devicePixelRatioF();
  const int scale_up = std::max(1, static_cast<int>(std::lround(ratio)));
  const RasterPalette palette_now = raster_palette(tokens_for(palette()));
  const auto block_of = [](QImage& image) {
    return PixelBlock{reinterpret_cast<Pixel*>(image.bits()), image.bytesPerLine() / 4, image.width(), image.height()};
  };
  const QSize wanted = geometry_.lanes.size() * scale_up;
  if (image_.size() != wanted) {
    image_ = QImage(wanted, QImage::Format_RGB32);
    image_.setDevicePixelRatio(scale_up);
    image_stale_ = true;
  }
  if (image_stale_ && picture != nullptr && !image_.isNull()) {
    const LanesPicture lanes{*picture, state_.layout(), state_.window(), scroll(), scale_up, critical_};
    labels_ = paint_lanes(block_of(image_), lanes, palette_now);
    image_stale_ = false;
  }
  const QSize strip = geometry_.overview.size() * scale_up;
  if (overview_.size() != strip) {
    overview_ = QImage(strip, QImage::Format_RGB32);
    overview_.setDevicePixelRatio(scale_up);
    overview_stale_ = true;
  }
  if (overview_stale_ && picture != nullptr && !overview_.isNull()) {
    paint_overview(block_of(overview_), *picture, state_.current_rank(), whole(state_.step()), palette_now, scale_up);
    overview_stale_ = false;
  }
}

}  // namespace cpfit::gui
