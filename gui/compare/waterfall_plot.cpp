#include "gui/compare/waterfall_plot.h"

#include <QAccessible>
#include <QHelpEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>

#include "gui/look/color_tokens.h"
#include "gui/look/figures.h"
#include "gui/look/hatch.h"

namespace cpfit::gui {

WaterfallAxis waterfall_axis(const std::vector<WaterfallRow>& rows) {
  if (rows.empty()) return {};
  std::int64_t least = std::max(rows.front().to, std::int64_t{0}), most = least;
  for (const WaterfallRow& row : rows) {
    if (row.kind == PartKind::kPart) least = std::min({least, row.from, row.to});
    most = std::max({most, row.from, row.to});
    if (row.kind == PartKind::kTotal) least = std::min(least, row.to);
  }
  const std::int64_t moved = most - least;
  // Cut where what moves is less than a third of the picture; then it fills two thirds of it.
  if (moved > 0 && moved * 3 < most) return {std::max<std::int64_t>(0, least - moved / 2), most + moved / 20};
  return {0, std::max<std::int64_t>(1, most + most / 40)};
}

WaterfallPlot::WaterfallPlot(WaterfallUnit unit, QWidget* parent) : QWidget(parent), unit_(unit) {
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName(unit == WaterfallUnit::kTime ? tr("Step time by part") : tr("Memory by component"));
}

void WaterfallPlot::show_rows(std::vector<WaterfallRow> rows) {
  rows_ = std::move(rows);
  current_ = -1;
  updateGeometry();
  update();
}

QString WaterfallPlot::value_text(std::int64_t value) const {
  return unit_ == WaterfallUnit::kTime ? time_text(seconds_of(value)) : bytes_text(Bytes(static_cast<double>(value)));
}

QString WaterfallPlot::change_text(std::int64_t value) const {
  return unit_ == WaterfallUnit::kTime ? signed_time(seconds_of(value)) : signed_bytes(Bytes(static_cast<double>(value)));
}

QString WaterfallPlot::row_text(const WaterfallRow& row) const {
  if (row.kind == PartKind::kTotal) return tr("%1: %2").arg(row.name, value_text(row.to));
  return tr("%1: %2, from %3 to %4").arg(row.name, change_text(row.change()), value_text(row.a), value_text(row.b));
}

double WaterfallPlot::row_height() const {
  const double wanted = fontMetrics().height() + 10.0;
  return rows_.empty()
             ? wanted
             : std::clamp((height() - 8.0) / static_cast<double>(rows_.size()), fontMetrics().height() + 1.0, wanted + 8.0);
}

QSize WaterfallPlot::minimumSizeHint() const {
  return {300,
          static_cast<int>(static_cast<double>(std::max<std::size_t>(3, rows_.size())) * (fontMetrics().height() + 1.0)) + 10};
}
QSize WaterfallPlot::sizeHint() const {
  return {460,
          static_cast<int>(static_cast<double>(std::max<std::size_t>(3, rows_.size())) * (fontMetrics().height() + 10.0)) + 10};
}

int WaterfallPlot::row_at(double y) const {
  const int row = static_cast<int>((y - 4.0) / row_height());
  return row >= 0 && row < static_cast<int>(rows_.size()) ? row : -1;
}

void WaterfallPlot::go_to(int row) {
  if (rows_.empty()) return;
  current_ = std::clamp(row, 0, static_cast<int>(rows_.size()) - 1);
  setAccessibleDescription(row_text(rows_[static_cast<std::size_t>(current_)]));
  QAccessibleEvent changed(this, QAccessible::DescriptionChanged);
  QAccessible::updateAccessibility(&changed);
  update();
}

void WaterfallPlot::mousePressEvent(QMouseEvent* event) {
  if (const int row = row_at(event->position().y()); row >= 0) go_to(row);
}

void WaterfallPlot::keyPressEvent(QKeyEvent* event) {
  switch (event->key()) {
    case Qt::Key_Up:
      return go_to(current_ - 1);
    case Qt::Key_Down:
      return go_to(current_ + 1);
    case Qt::Key_Home:
      return go_to(0);
    case Qt::Key_End:
      return go_to(static_cast<int>(rows_.size()) - 1);
    default:
      QWidget::keyPressEvent(event);
  }
}

bool WaterfallPlot::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    const int row = row_at(help->pos().y());
    if (row >= 0)
      QToolTip::showText(help->globalPos(), row_text(rows_[static_cast<std::size_t>(row)]), this);
    else
      QToolTip::hideText();
    return true;
  }
  return QWidget::event(event);
}

void WaterfallPlot::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const ColorTokens& t = tokens_for(palette());
  painter.fillRect(rect(), t.surface);
  painter.setPen(hasFocus() ? QPen(t.accent, 2.0) : QPen(t.line));
  painter.drawRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5));
  if (rows_.empty()) return;
  double names = 0, values = 0;
  for (const WaterfallRow& row : rows_) {
    names = std::max(names, fontMetrics().horizontalAdvance(row.name) * (row.kind == PartKind::kTotal ? 1.15 : 1.0));
    const QString text = row.kind == PartKind::kTotal ? value_text(row.to) : change_text(row.change());
    values = std::max<double>(values, fontMetrics().horizontalAdvance(text));
  }
  names = std::min(names + 14.0, width() * 0.4);
  const double left = 8.0 + names, right = width() - values * 1.1 - 22.0;
  const WaterfallAxis axis = waterfall_axis(rows_);
  const double unit = std::max(1.0, right - left) / static_cast<double>(axis.high - axis.low);
  const auto x_of = [&](std::int64_t value) { return left + static_cast<double>(std::max(value, axis.low) - axis.low) * unit; };
  const double tall = row_height();
  painter.setRenderHint(QPainter::Antialiasing, false);
  double y = 4.0, last_x = -1.0;
  for (std::size_t i = 0; i < rows_.size(); ++i, y += tall) {
    const WaterfallRow& row = rows_[i];
    const bool total = row.kind == PartKind::kTotal;
    if (static_cast<int>(i) == current_) painter.fillRect(QRectF(2, y, width() - 4.0, tall), mixed(t.surface, t.accent, 0.14));
    QFont font = this->font();
    font.setBold(total);
    painter.setFont(font);
    painter.setPen(t.text);
    const QRectF name(8, y, names - 10, tall);
    painter.drawText(name, Qt::AlignLeft | Qt::AlignVCenter,
                     QFontMetricsF(font).elidedText(row.name, Qt::ElideRight, name.width()));
    const double x0 = total ? left : x_of(std::min(row.from, row.to)), x1 = x_of(std::max(row.from, row.to));
    const double thick = std::min(tall - 5.0, 20.0);
    const QRectF bar(std::round(x0), std::round(y + (tall - thick) / 2), std::max(1.0, std::round(x1 - x0)), thick);
    const QColor color = total                             ? mixed(t.surface, t.text, 0.45)
                         : unit_ == WaterfallUnit::kMemory ? color_of(t, static_cast<Component>(row.color))
                                                           : color_of(t, static_cast<SpanKind>(row.color));
    // Less is solid, more is pale in a frame: the direction shows without its colour.
    const bool grows = !total && row.change() > 0;
    painter.fillRect(bar, grows ? mixed(t.surface, color, 0.45) : color);
    if (row.exposed && bar.width() > 6) paint_hatch(painter, bar, Hatch::kExposed, grows ? color : mixed(color, t.surface, 0.55));
    if (grows) {
      painter.setPen(QPen(color, 1.4));
      painter.drawRect(bar.adjusted(0.5, 0.5, -0.5, -0.5));
    }
    // A thin line leads from one level to the next.
    if (last_x >= 0.0) {
      painter.setPen(QPen(t.muted, 1.0, Qt::DotLine));
      painter.drawLine(QPointF(last_x, y - tall / 2 + thick / 2), QPointF(last_x, y + tall / 2 - thick / 2));
    }
    last_x = std::round(x_of(row.to));
    const QString text = total ? value_text(row.to) : change_text(row.change());
    painter.setPen(total || row.change() == 0 ? t.text : row.change() < 0 ? t.good : t.bad);
    painter.drawText(QRectF(right + 6, y, width() - right - 14, tall), Qt::AlignRight | Qt::AlignVCenter, text);
  }
  if (axis.is_cut()) {
    // Two strokes through the totals: the axis does not begin at zero.
    painter.setRenderHint(QPainter::Antialiasing);
    for (const double row_y : {4.0, 4.0 + tall * static_cast<double>(rows_.size() - 1)}) {
      for (const double dx : {8.0, 12.0}) {
        painter.setPen(QPen(t.surface, 2.4));
        painter.drawLine(QPointF(left + dx - 2, row_y + tall - 2), QPointF(left + dx + 3, row_y + 2));
      }
    }
  }
}

}  // namespace cpfit::gui
