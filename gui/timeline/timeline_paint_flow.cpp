// The selected span and what belongs to it: outline, partner, cause, effects, the way of its KV block.
#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "gui/timeline/span_flow.h"
#include "gui/timeline/timeline_paint.h"

namespace cpfit::gui {

std::optional<QRectF> TimelinePainter::rect_of(SpanRef ref) const {
  const TimelineLayout& layout = view_.state_.layout();
  const std::ptrdiff_t row = layout.row_of_lane(ref.lane);
  if (row < 0) return std::nullopt;
  const std::size_t r = static_cast<std::size_t>(row);
  const int top = at_.lanes.top() + layout.top_of(r, view_.scroll());
  const int bottom = top + layout.rows[r].height;
  const int first = at_.lanes.top() + (layout.rows[r].pinned ? 0 : layout.pinned_height);
  if (bottom <= first || top >= at_.lanes.bottom()) return std::nullopt;
  const TimeScale scale = view_.scale();
  const LaneSpan& span = span_of(*picture_, ref);
  const double left = scale.x_of(span.start);
  return QRectF(left, top + 2, std::max(1.0, scale.x_of(span.end) - left), layout.rows[r].height - 4);
}

std::optional<QPointF> TimelinePainter::anchor(SpanRef ref, bool end) const {
  const std::optional<QRectF> rect = rect_of(ref);
  if (!rect) return std::nullopt;
  return QPointF(end ? rect->right() : rect->left(), rect->center().y());
}

void TimelinePainter::arrow(const QPointF& from, const QPointF& to, const QColor& color, double width, const QString& word) {
  painter_.setRenderHint(QPainter::Antialiasing, true);
  QPainterPath path(from);
  const double bend = std::clamp(std::abs(to.x() - from.x()) / 2, 14.0, 60.0);
  path.cubicTo(from + QPointF(bend, 0), to - QPointF(bend, 0), to);
  // A light line beneath keeps it readable over any hue.
  painter_.strokePath(path, QPen(tokens_.surface, width + 2.5));
  painter_.strokePath(path, QPen(color, width));
  const QPolygonF head({to, to + QPointF(-8, -4), to + QPointF(-8, 4)});
  painter_.setPen(QPen(tokens_.surface, 1));
  painter_.setBrush(color);
  painter_.drawPolygon(head);
  if (!word.isEmpty()) {
    const QPointF middle = path.pointAtPercent(0.5);
    const QRectF room = QRectF(painter_.fontMetrics().boundingRect(word)).adjusted(-5, -2, 5, 2);
    const QRectF box(middle - QPointF(room.width() / 2, room.height() / 2), room.size());
    painter_.setPen(QPen(color, 1));
    painter_.setBrush(tokens_.surface);
    painter_.drawRoundedRect(box, 3, 3);
    painter_.setPen(tokens_.text);
    painter_.drawText(box, Qt::AlignCenter, word);
  }
  painter_.setRenderHint(QPainter::Antialiasing, false);
}

/// Arrows of the selected span only: to what caused it, to what it caused, between the ends of its message; a KV block's whole
/// way.
void TimelinePainter::flow() {
  const std::optional<SpanRef> selected = view_.state_.selected();
  if (!selected) return;
  painter_.setFont(small_);
  const std::vector<SpanRef> hops = block_hops(*picture_, *selected);
  const QColor ring = tokens_.ring;
  for (std::size_t i = 0; i + 1 < hops.size(); ++i) {
    const std::optional<SpanRef> received = partner_of(*picture_, hops[i]);
    const std::optional<QPointF> from = anchor(received ? *received : hops[i], true), to = anchor(hops[i + 1], false);
    if (from && to) arrow(*from, *to, ring, 1.5, {});
  }
  if (const std::optional<SpanRef> partner = partner_of(*picture_, *selected)) {
    const LaneSpan& span = span_of(*picture_, *selected);
    const std::optional<QRectF> own = rect_of(*selected), other = rect_of(*partner);
    if (own && other) {
      const QPointF a(own->center().x(), own->center().y()), b(own->center().x(), other->center().y());
      arrow(span.sends ? a : b, span.sends ? b : a, ring, 2,
            view_.tr("to rank %1")
                .arg(static_cast<qlonglong>(
                    picture_->cluster_rank(picture_->lane(span.sends ? partner->lane : selected->lane).rank))));
      painter_.setPen(QPen(ring, 2, Qt::DotLine));
      painter_.setBrush(Qt::NoBrush);
      painter_.drawRect(*other);
    }
  }
  std::optional<SpanRef> to = *selected;
  const std::vector<SpanRef> before = chain_before(*picture_, *selected, view_.chain_ ? 24 : 1);
  for (const SpanRef cause : before) {
    const std::optional<QPointF> a = anchor(cause, true), b = anchor(*to, false);
    if (a && b) arrow(*a, *b, tokens_.text, 1.5, {});
    to = cause;
  }
  for (const SpanRef effect : effects_of(*picture_, *selected, 3)) {
    const std::optional<QPointF> a = anchor(*selected, true), b = anchor(effect, false);
    if (a && b) arrow(*a, *b, tokens_.accent, 1.5, {});
  }
}

void TimelinePainter::selection() {
  const std::optional<SpanRef> selected = view_.state_.selected();
  if (!selected) return;
  const std::optional<QRectF> rect = rect_of(*selected);
  if (!rect) return;
  painter_.setBrush(Qt::NoBrush);
  painter_.setPen(QPen(tokens_.surface, 4));
  painter_.drawRect(rect->adjusted(-1, -1, 1, 1));
  painter_.setPen(QPen(tokens_.accent, 2));
  painter_.drawRect(rect->adjusted(-2, -2, 2, 2));
}

}  // namespace cpfit::gui
