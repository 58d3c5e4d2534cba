// What the step timeline tells of the place under the pointer.
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "gui/look/figures.h"
#include "gui/timeline/span_text.h"
#include "gui/timeline/timeline_view.h"

namespace {
constexpr double kEdge = 6;  // pixels within which an edge is taken
}  // namespace

namespace cpfit::gui {

void TimelineView::hover(const QPoint& at) {
  hover_at_ = at;
  const bool over = geometry_.lanes.contains(at) ||
                    std::any_of(geometry_.tracks.begin(), geometry_.tracks.end(), [&](const QRect& r) { return r.contains(at); });
  emit timePointed(over ? scale().time_at(at.x()) : -1);
  bool edge = false;
  if (geometry_.overview.contains(at)) {
    const TimeScale strip = overviewScale();
    edge = std::abs(strip.x_of(state_.window().from) - at.x()) <= kEdge ||
           std::abs(strip.x_of(state_.window().to) - at.x()) <= kEdge;
  } else if (state_.range() && over) {
    edge = std::abs(scale().x_of(state_.range()->time.from) - at.x()) <= kEdge ||
           std::abs(scale().x_of(state_.range()->time.to) - at.x()) <= kEdge;
  }
  setCursor(edge ? Qt::SplitHCursor : Qt::ArrowCursor);
  // Once shown it follows; before, it waits for the pointer to rest.
  if (QToolTip::isVisible() && !hover_text_.isEmpty()) return showHover();
  hover_timer_.start();
}

void TimelineView::showHover() {
  hover_text_.clear();
  if (const std::optional<SpanRef> span = spanAt(hover_at_)) {
    QStringList rows;
    for (const SpanFact& fact : span_facts(*state_.picture(), *span))
      rows << QStringLiteral("<tr><td align='right'>%1&nbsp;&nbsp;</td><td><b>%2</b></td></tr>")
                  .arg(fact.name.toHtmlEscaped(), fact.value.toHtmlEscaped());
    hover_text_ = QStringLiteral("<table cellspacing='0'>") + rows.join(QString()) + QStringLiteral("</table>");
  } else if (tracks_) {
    for (std::size_t t = 0; t < geometry_.tracks.size() && t < state_.tracks().size(); ++t) {
      if (!geometry_.tracks[t].contains(hover_at_) || hover_at_.x() < geometry_.lanes.left()) continue;
      hover_text_ = trackText(t, scale().time_at(hover_at_.x()));
    }
  }
  if (hover_text_.isEmpty()) return QToolTip::hideText();
  QToolTip::showText(mapToGlobal(hover_at_ + QPoint(12, 16)), hover_text_, this);
}

/// What a track says of one instant: the five largest components, or the rate of the link.
QString TimelineView::trackText(std::size_t track, std::int64_t time) const {
  const TrackChoice& choice = state_.tracks()[track];
  QStringList rows;
  const auto row = [&](const QString& name, const QString& value) {
    rows << QStringLiteral("<tr><td align='right'>%1&nbsp;&nbsp;</td><td><b>%2</b></td></tr>")
                .arg(name.toHtmlEscaped(), value.toHtmlEscaped());
  };
  row(tr("at"), text_of(print_instant(time, std::max<std::int64_t>(1, static_cast<std::int64_t>(scale().per_pixel())))));
  for (const MemoryStack& stack : tracks_->memory) {
    if (choice.kind != TrackKind::kMemory || std::to_string(state_.picture()->cluster_rank(stack.rank)) != choice.key) continue;
    const std::size_t point = point_at(stack, time);
    row(tr("allocated"), bytes_text(Bytes(static_cast<double>(stack.totals[point]))));
    std::vector<std::size_t> order;
    for (std::size_t c = 0; c < stack.components.size(); ++c) order.push_back(c);
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return stack.part(point, a) > stack.part(point, b); });
    for (std::size_t i = 0; i < std::min<std::size_t>(5, order.size()); ++i) {
      const std::int64_t bytes = stack.part(point, order[i]);
      if (bytes > 0) row(label_of(name_of(stack.components[order[i]])), bytes_text(Bytes(static_cast<double>(bytes))));
    }
  }
  for (const LinkTrack& link : tracks_->links) {
    if (choice.kind != TrackKind::kLink || link.name != choice.key) continue;
    const auto after = std::partition_point(link.points.begin(), link.points.end(),
                                            [&](const timeline::CounterPoint& p) { return p.time <= time; });
    const double rate = after == link.points.begin() ? 0 : std::prev(after)->value;
    row(tr("carries"), rate_text(BytesPerSecond(rate * 1e9)));
    row(tr("of its capacity"), share_text(rate * 1e9 / link.capacity.value()));
  }
  return QStringLiteral("<table cellspacing='0'>") + rows.join(QString()) + QStringLiteral("</table>");
}

void TimelineView::leaveEvent(QEvent* event) {
  hover_timer_.stop();
  hover_at_ = {-1, -1};
  emit timePointed(-1);
  QWidget::leaveEvent(event);
}

}  // namespace cpfit::gui
