// How the parallel coordinates are drawn. What they hold and what a person does with them: parallel_plot.cpp.
#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "gui/look/color_tokens.h"
#include "gui/look/figures.h"
#include "gui/results/parallel_plot.h"

namespace cpfit::gui {

namespace {

/// Best is strong, worst is pale: lightness carries the order, for every eye.
QColor line_color(const ColorTokens& t, float share) {
  return mixed(t.surface, mixed(t.exposed, t.attention, 1.0 - static_cast<double>(share)),
               1.0 - 0.62 * static_cast<double>(share));
}

}  // namespace

void ParallelPlot::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const ColorTokens& t = tokens_for(palette());
  painter.fillRect(rect(), t.surface);
  painter.setPen(hasFocus() ? QPen(t.accent, 2.0) : QPen(t.line));
  painter.drawRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5));
  if (axes_.size() < 2) {
    painter.setPen(t.muted);
    painter.drawText(rect().adjusted(16, 16, -16, -16), Qt::AlignCenter | Qt::TextWordWrap,
                     book_.is_empty() ? tr("Axes appear here when the search has found recipes.")
                                      : tr("No two figures vary among these recipes: loosen the filter."));
    return;
  }
  painter.setRenderHint(QPainter::Antialiasing);
  paint_lines(painter);
  if (const auto row = book_.other()) paint_chosen(painter, *row, t.text, Qt::DashLine);
  if (const auto row = book_.chosen()) paint_chosen(painter, *row, t.text, Qt::SolidLine);
  paint_axes(painter);
  paint_foot(painter);
}

void ParallelPlot::paint_lines(QPainter& painter) const {
  const ColorTokens& t = tokens_for(palette());
  for (const bool back : {true, false}) {
    const auto& all = back ? behind_ : front_;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const double x0 = axis_x(i), x1 = axis_x(i + 1);
      for (const LineBundle& bundle : all[i]) {
        painter.setPen(back ? QPen(t.grid, 1.0) : QPen(line_color(t, bundle.color), bundle.color < 0.02F ? 2.0 : 1.2));
        painter.drawLine(QPointF(x0, place_y(static_cast<double>(bundle.left))),
                         QPointF(x1, place_y(static_cast<double>(bundle.right))));
      }
    }
  }
}

void ParallelPlot::paint_chosen(QPainter& painter, std::uint32_t row, const QColor& color, Qt::PenStyle style) const {
  QPolygonF line;
  for (std::size_t i = 0; i < axes_.size(); ++i)
    line.append({axis_x(i), place_y(place_of(axes_[i], book_.set()->columns[axes_[i].field].values[row]))});
  const ColorTokens& t = tokens_for(palette());
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(t.surface, 5.0, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
  painter.drawPolyline(line);
  painter.setPen(QPen(color, 2.4, style, Qt::RoundCap, Qt::RoundJoin));
  painter.drawPolyline(line);
}

void ParallelPlot::paint_axes(QPainter& painter) const {
  for (std::size_t i = 0; i < axes_.size(); ++i) paint_axis(painter, i);
  if (drag_ == Drag::kTitle) {
    painter.setPen(QPen(tokens_for(palette()).accent, 2.0, Qt::DashLine));
    painter.drawLine(QPointF(now_.x(), plot_area().top()), QPointF(now_.x(), plot_area().bottom()));
  }
}

void ParallelPlot::paint_axis(QPainter& painter, std::size_t index) const {
  const ColorTokens& t = tokens_for(palette());
  const ParallelAxis& axis = axes_[index];
  const ResultField& field = result_fields()[axis.field];
  const double x = std::round(axis_x(index)) + 0.5;
  const QRectF area = plot_area();
  const bool focused = hasFocus() && index == focus_;
  painter.setPen(QPen(focused ? t.accent : t.muted, focused ? 2.0 : 1.0));
  painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
  if (const auto [low, high] = brush_places(*book_.set(), axis, book_.filter()); low <= high) {
    QRectF box(x - 6, place_y(high) - 3, 12, place_y(low) - place_y(high) + 6);
    QColor fill = t.accent;
    fill.setAlphaF(0.30F);
    painter.setPen(QPen(t.accent, 1.4));
    painter.setBrush(fill);
    painter.drawRoundedRect(box, 3, 3);
    painter.setBrush(Qt::NoBrush);
  }
  const double room = axis_distance();
  const double line = fontMetrics().height();
  // At the edges a title may not leave the picture.
  const auto centered = [&](double y, double most, const QString& text) {
    const QFontMetricsF metrics(painter.font());
    const double width = std::min(metrics.horizontalAdvance(text) + 2, most);
    const double left = std::clamp(x - width / 2, 4.0, this->width() - width - 4.0);
    painter.drawText(QRectF(left, y, width, line), Qt::AlignCenter, metrics.elidedText(text, Qt::ElideRight, width));
  };
  painter.setFont(title_font());
  painter.setPen(focused ? t.accent : t.text);
  const QString title = text_of(field.label) + (axis.flipped ? QStringLiteral(" ↓") : QString());
  centered(titles_take_turns_ && index % 2 == 0 ? 4 + line : 4, titles_take_turns_ ? 2 * room - 8 : room - 4, title);
  QFont font = this->font();
  font.setPointSizeF(font.pointSizeF() * 0.88);
  painter.setFont(font);
  painter.setPen(t.muted);
  QStringList below;
  if (!field.unit.empty()) below.append(text_of(field.unit));
  if (axis.logarithmic) below.append(tr("log"));
  if (!below.isEmpty()) centered(4 + (titles_take_turns_ ? 2 : 1) * line, room - 4, below.join(QStringLiteral(", ")));
  const QFontMetricsF small(font);
  const auto label = [&](double place, const QString& text) {
    const double y = place_y(place);
    const double most = index + 1 < axes_.size() ? room - 14 : 40.0;
    const QString shown = small.elidedText(text, Qt::ElideRight, most);
    const QRectF box(x + 5, y - small.height() / 2, small.horizontalAdvance(shown) + 4, small.height());
    QColor ground = t.surface;
    ground.setAlphaF(0.82F);
    painter.fillRect(box, ground);
    painter.setPen(t.text);
    painter.drawText(box.adjusted(2, 0, 0, 0), Qt::AlignLeft | Qt::AlignVCenter, shown);
    painter.setPen(QPen(t.muted));
    painter.drawLine(QPointF(x - 3, y), QPointF(x + 3, y));
  };
  const ResultColumn& column = book_.set()->columns[axis.field];
  if (!axis.stops.empty()) {
    const auto fit = static_cast<std::size_t>(std::max(2.0, area.height() / (small.height() * 1.1)));
    const std::size_t every = std::max<std::size_t>(1, (axis.stops.size() + fit - 1) / fit);
    for (std::size_t i = 0; i < axis.stops.size(); i += every)
      label(place_of(axis, axis.stops[i]), figure_text(column, field, axis.stops[i]));
  } else {
    std::vector<double> values = {axis.low, (axis.low + axis.high) / 2, axis.high};
    if (axis.logarithmic) values = {axis.least, std::sqrt(axis.least * axis.high), axis.high};
    if (axis.logarithmic && axis.low <= 0.0) values.push_back(0.0);
    for (const double value : values) label(place_of(axis, value), figure_text(column, field, value));
  }
}

void ParallelPlot::paint_foot(QPainter& painter) const {
  const ColorTokens& t = tokens_for(palette());
  const double line = fontMetrics().height();
  const QRectF foot(10, height() - line - 5.0, width() - 20.0, line);
  painter.setFont(font());
  constexpr double kBar = 90.0;
  const QString name = text_of(result_fields()[color_].label);
  const QString best = tr("best %1").arg(name.toLower());
  painter.setPen(t.muted);
  painter.drawText(foot, Qt::AlignLeft | Qt::AlignVCenter, best);
  const double from = foot.left() + fontMetrics().horizontalAdvance(best) + 6;
  QLinearGradient gradient(from, 0, from + kBar, 0);
  for (const float share : {0.0F, 0.25F, 0.5F, 0.75F, 1.0F})
    gradient.setColorAt(static_cast<double>(share), line_color(t, share));
  painter.fillRect(QRectF(from, foot.center().y() - 4, kBar, 8), gradient);
  painter.drawText(QRectF(from + kBar + 6, foot.top(), 60, line), Qt::AlignLeft | Qt::AlignVCenter, tr("worst"));
  if (!was_brushed_) {
    painter.setPen(t.accent);
    const double left = from + kBar + 60;
    painter.drawText(QRectF(left, foot.top(), foot.right() - left, line), Qt::AlignRight | Qt::AlignVCenter,
                     fontMetrics().elidedText(tr("Drag along an axis to keep only what passes there"), Qt::ElideRight,
                                              static_cast<int>(foot.right() - left)));
  }
}

}  // namespace cpfit::gui
