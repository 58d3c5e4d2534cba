// The tracks under the lanes: live memory stacked by component, a link's used share, micro-batches in flight.
#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "gui/look/figures.h"
#include "gui/timeline/in_flight.h"
#include "gui/timeline/span_text.h"
#include "gui/timeline/timeline_paint.h"

namespace cpfit::gui {

namespace {

constexpr int kTitle = 16;  // pixels above a plot

QRect plot_of(const QRect& area, const QRect& lanes) {
  return {lanes.left(), area.top() + kTitle, lanes.width(), area.height() - kTitle - 2};
}

}  // namespace

QImage& TimelinePainter::track_image(std::size_t index, const QRect& plot) const {
  if (view_.track_images_.size() <= index) view_.track_images_.resize(index + 1);
  QImage& image = view_.track_images_[index];
  const double ratio = painter_.device()->devicePixelRatioF();
  const QSize size = (QSizeF(plot.size()) * ratio).toSize();
  if (image.size() != size) {
    image = QImage(size, QImage::Format_ARGB32_Premultiplied);
    image.setDevicePixelRatio(ratio);
  }
  image.fill(Qt::transparent);
  return image;
}

void TimelinePainter::tracks() {
  const StepTracks* tracks = view_.tracks_.get();
  const std::vector<TrackChoice>& chosen = view_.state_.tracks();
  for (std::size_t t = 0; t < at_.tracks.size() && t < chosen.size(); ++t) {
    const QRect area = at_.tracks[t];
    painter_.fillRect(area, tokens_.window);
    painter_.fillRect(plot_of(area, at_.lanes), tokens_.surface);
    painter_.setPen(tokens_.line);
    painter_.drawLine(area.topLeft(), area.topRight());
    const TrackChoice& choice = chosen[t];
    bool shown = false;
    if (choice.kind == TrackKind::kInFlight) {
      for (std::size_t r = 0; r < picture_->ranks.size() && !shown; ++r) {
        if (std::to_string(picture_->ranks[r].rank) != choice.key) continue;
        in_flight_track(area, static_cast<std::int32_t>(r));
        shown = true;
      }
    } else if (tracks != nullptr && choice.kind == TrackKind::kMemory) {
      for (const MemoryStack& stack : tracks->memory) {
        if (shown || std::to_string(picture_->cluster_rank(stack.rank)) != choice.key) continue;
        memory_track(area, t, stack);
        shown = true;
      }
    } else if (tracks != nullptr) {
      for (const LinkTrack& link : tracks->links) {
        if (shown || link.name != choice.key) continue;
        link_track(area, t, link);
        shown = true;
      }
    }
    if (shown) continue;
    track_frame(
        area, choice.kind == TrackKind::kMemory ? view_.tr("memory, rank %1").arg(text_of(choice.key)) : text_of(choice.key), {});
    painter_.setFont(small_);
    words(QRectF(plot_of(area, at_.lanes)), tracks == nullptr ? view_.tr("being computed") : view_.tr("this step has none"),
          tokens_.muted, Qt::AlignCenter);
  }
}

void TimelinePainter::track_frame(const QRect& area, const QString& title, const QStringList& lines) {
  QFont bold = small_;
  bold.setBold(true);
  painter_.setFont(bold);
  const QRect column(area.left() + 6, area.top() + 1, at_.label_width - 16, area.height() - 2);
  words(QRectF(column.left(), column.top(), column.width(), kTitle), title, tokens_.text, Qt::AlignVCenter | Qt::AlignRight);
  painter_.setFont(small_);
  double y = column.top() + kTitle;
  const double step = painter_.fontMetrics().height();
  for (const QString& line : lines) {
    if (y + step > area.bottom()) break;
    words(QRectF(column.left(), y, column.width(), step), line, tokens_.muted, Qt::AlignVCenter | Qt::AlignRight);
    y += step;
  }
}

void TimelinePainter::memory_track(const QRect& area, std::size_t index, const MemoryStack& stack) {
  const QRect plot = plot_of(area, at_.lanes);
  const double capacity = view_.tracks_->capacity.value();
  const double peak = static_cast<double>(stack.totals[stack.peak]);
  const double top = std::max(capacity, peak) * 1.06;
  QImage& image = track_image(index, plot);
  const std::vector<StackColumn> columns = stack_columns(stack, view_.state_.window(), static_cast<std::size_t>(image.width()));
  const double per_byte = image.height() / top;
  std::vector<QRgb> colors;
  for (const Component component : stack.components) colors.push_back(color_of(tokens_, component).rgb() | 0xff000000U);
  for (int x = 0; x < image.width(); ++x) {
    const StackColumn& column = columns[static_cast<std::size_t>(x)];
    double below = 0;
    int bottom = image.height();
    for (std::size_t c = 0; c < stack.components.size(); ++c) {
      below += static_cast<double>(stack.part(column.point, c));
      const int upper = std::max(0, image.height() - static_cast<int>(std::lround(below * per_byte)));
      for (int y = upper; y < bottom; ++y) reinterpret_cast<QRgb*>(image.scanLine(y))[x] = colors[c];
      bottom = std::min(bottom, upper);
    }
  }
  painter_.drawImage(plot.topLeft(), image);

  const auto y_of = [&](double bytes) { return plot.bottom() + 1 - bytes / top * plot.height(); };
  painter_.save();
  painter_.setClipRect(QRect(plot.left(), area.top(), plot.width(), area.height()));
  if (capacity > 0) {
    painter_.setPen(QPen(tokens_.bad, 1, Qt::DashLine));
    painter_.drawLine(QPointF(plot.left(), y_of(capacity)), QPointF(plot.right(), y_of(capacity)));
  }
  const double x = view_.scale().x_of(stack.times[stack.peak]);
  painter_.setFont(small_);
  QString name = view_.tr("peak %1 at %2").arg(bytes_text(Bytes(peak)), duration_text(stack.times[stack.peak]));
  if (!stack.at_peak.empty())
    name += view_.tr(": %1 %2").arg(bytes_text(Bytes(static_cast<double>(stack.at_peak.front().bytes))),
                                    text_of(stack.at_peak.front().name));
  const double room = painter_.fontMetrics().horizontalAdvance(name) + 10;
  if (x >= plot.left() && x <= plot.right()) {
    painter_.setPen(QPen(tokens_.text, 1));
    painter_.drawLine(QPointF(x, area.top() + kTitle - 3), QPointF(x, y_of(peak)));
    const double left = std::clamp(x + 4, double(plot.left()) + 4, double(plot.right()) - room);
    words(QRectF(left, area.top(), room, kTitle), name, tokens_.text, Qt::AlignVCenter | Qt::AlignLeft);
  } else {
    words(QRectF(plot.left() + 6, area.top(), plot.width() - 12, kTitle),
          (x < plot.left() ? QStringLiteral("← ") : QStringLiteral("→ ")) + name, tokens_.muted,
          Qt::AlignVCenter | (x < plot.left() ? Qt::AlignLeft : Qt::AlignRight));
  }
  painter_.restore();
  QStringList lines;
  if (capacity > 0) lines << view_.tr("of %1").arg(bytes_text(Bytes(capacity)));
  // The classes in the order of the stack from above, the largest at the peak first.
  std::vector<std::size_t> order;
  for (std::size_t c = 0; c < stack.components.size(); ++c) order.push_back(c);
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return stack.part(stack.peak, a) > stack.part(stack.peak, b); });
  const QRectF column(area.left() + 6, area.top() + kTitle, at_.label_width - 16, area.height() - kTitle);
  track_frame(area, view_.tr("memory, rank %1").arg(static_cast<qlonglong>(picture_->cluster_rank(stack.rank))), {});
  painter_.setFont(small_);
  const double step = painter_.fontMetrics().height();
  double y = column.top();
  for (const std::size_t c : order) {
    if (y + step > area.bottom() || stack.part(stack.peak, c) == 0) break;
    const QRectF box(column.right() - 9, y + step / 2 - 4, 9, 9);
    painter_.fillRect(box, color_of(tokens_, stack.components[c]));
    words(QRectF(column.left(), y, column.width() - 14, step), label_of(name_of(stack.components[c])), tokens_.muted,
          Qt::AlignVCenter | Qt::AlignRight);
    y += step;
  }
  if (capacity > 0) {
    const QString text = bytes_text(Bytes(capacity));
    const double width = painter_.fontMetrics().horizontalAdvance(text) + 8;
    const QRectF box(plot.right() - width, y_of(capacity) + 1, width, step);
    painter_.fillRect(box, mixed(tokens_.surface, tokens_.bad, 0.06));
    words(box, text, tokens_.bad, Qt::AlignCenter);
  }
}

void TimelinePainter::link_track(const QRect& area, std::size_t index, const LinkTrack& link) {
  const QRect plot = plot_of(area, at_.lanes);
  QImage& image = track_image(index, plot);
  const std::vector<RateColumn> columns = rate_columns(link, view_.state_.window(), static_cast<std::size_t>(image.width()));
  const double full = link.capacity.value() * 1e-9;
  const double top = full * 1.08;
  const QRgb mean = tokens_.ring.rgb() | 0xff000000U;
  const QRgb highest = mixed(tokens_.surface, tokens_.ring, 0.35).rgb() | 0xff000000U;
  const auto rows = [&](double rate) {
    if (rate <= 0) return 0;
    return std::clamp(static_cast<int>(std::lround(rate / top * image.height())), 1, image.height());
  };
  for (int x = 0; x < image.width(); ++x) {
    const RateColumn& column = columns[static_cast<std::size_t>(x)];
    const int from_mean = image.height() - rows(column.mean), from_highest = image.height() - rows(column.highest);
    for (int y = from_highest; y < image.height(); ++y)
      reinterpret_cast<QRgb*>(image.scanLine(y))[x] = y >= from_mean ? mean : highest;
  }
  painter_.drawImage(plot.topLeft(), image);
  const double y = plot.bottom() + 1 - full / top * plot.height();
  painter_.setPen(QPen(tokens_.muted, 1, Qt::DashLine));
  painter_.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y));
  const double share = link.busy.value() / (static_cast<double>(picture_->timeline.step) * 1e-12);
  track_frame(area, text_of(link.name),
              {view_.tr("of %1").arg(rate_text(link.capacity)), view_.tr("busy %1 of the step").arg(share_text(share)),
               view_.tr("%1 moved").arg(bytes_text(Bytes(link.bytes)))});
  painter_.setFont(small_);
  words(QRectF(plot.left() + 6, area.top(), plot.width() - 12, kTitle),
        view_.tr("used share of the link: mean of a pixel dark, highest light"), tokens_.muted, Qt::AlignVCenter | Qt::AlignLeft);
}

void TimelinePainter::in_flight_track(const QRect& area, std::int32_t rank) {
  const QRect plot = plot_of(area, at_.lanes);
  const std::vector<InFlightPoint> points = micro_batches_in_flight(*picture_, rank);
  std::int32_t most = 1;
  for (const InFlightPoint& point : points) most = std::max(most, point.count);
  const TimeScale scale = view_.scale();
  const auto y_of = [&](std::int32_t count) {
    return plot.bottom() + 1 - static_cast<double>(count) / (most * 1.1) * plot.height();
  };
  painter_.save();
  painter_.setClipRect(plot);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::int64_t end = i + 1 < points.size() ? points[i + 1].time : picture_->timeline.step;
    if (points[i].count == 0 || end < scale.window.from || points[i].time > scale.window.to) continue;
    const double left = scale.x_of(points[i].time), right = std::max(scale.x_of(end), left + 1);
    painter_.fillRect(QRectF(left, y_of(points[i].count), right - left, plot.bottom() + 1 - y_of(points[i].count)), tokens_.pp);
  }
  painter_.restore();
  track_frame(area, view_.tr("in flight, rank %1").arg(static_cast<qlonglong>(picture_->cluster_rank(rank))),
              {view_.tr("micro-batches"), view_.tr("at most %1").arg(most)});
}

}  // namespace cpfit::gui
