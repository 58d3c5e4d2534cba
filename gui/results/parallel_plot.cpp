#include "gui/results/parallel_plot.h"

#include <QAccessible>
#include <QContextMenuEvent>
#include <QHelpEvent>
#include <QMenu>
#include <QMouseEvent>
#include <QPainter>
#include <QPainterPath>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "gui/look/color_tokens.h"
#include "gui/look/figures.h"
#include "gui/results/result_table.h"

namespace cpfit::gui {

namespace {

constexpr int kPlacesToldApart = 160;
constexpr double kClick = 4.0;  // pixels within which a press is no drag

/// Best is strong, worst is pale: lightness carries the order, for every eye.
QColor line_color(const ColorTokens& t, float share) {
  return mixed(t.surface, mixed(t.exposed, t.attention, 1.0 - static_cast<double>(share)),
               1.0 - 0.62 * static_cast<double>(share));
}

}  // namespace

ParallelPlot::ParallelPlot(ResultBook& book, Selection& selection, QWidget* parent)
    : QWidget(parent), book_(book), selection_(selection), color_(field_named("step")) {
  fields_ = ResultTable::usual_columns();
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setAccessibleName(tr("Parallel coordinates"));
  setObjectName(QStringLiteral("parallel"));
  connect(&book_, &ResultBook::rows_changed, this, &ParallelPlot::lay_out);
  connect(&selection_, &Selection::changed, this, [this] { update(); });
  lay_out();
}

void ParallelPlot::set_color_field(std::size_t field) {
  color_ = field;
  refold();
}

void ParallelPlot::set_fields(std::vector<std::size_t> fields) {
  fields_ = std::move(fields);
  lay_out();
}

void ParallelPlot::lay_out() {
  axes_ = book_.is_empty() ? std::vector<ParallelAxis>() : parallel_axes(*book_.set(), book_.rows().considered, fields_);
  // The order and the direction that a person gave stay through every new search.
  std::ranges::stable_sort(axes_, {}, [this](const ParallelAxis& axis) {
    const auto at = std::ranges::find(ranks_, axis.field);
    return at == ranks_.end() ? static_cast<std::ptrdiff_t>(result_fields().size() + axis.field) : at - ranks_.begin();
  });
  for (ParallelAxis& axis : axes_) {
    axis.flipped = std::ranges::find(flipped_, axis.field) != flipped_.end();
    const bool logarithmic = std::ranges::find(logarithmic_, axis.field) != logarithmic_.end();
    set_logarithmic(*book_.set(), book_.rows().considered, logarithmic, axis);
  }
  focus_ = axes_.empty() ? 0 : std::min(focus_, axes_.size() - 1);
  refold();
}

void ParallelPlot::refold() {
  behind_.clear();
  front_.clear();
  if (axes_.size() >= 2) {
    const ResultSet& set = *book_.set();
    const std::vector<float> shares = color_shares(set, book_.rows().considered, color_);
    std::vector<std::uint32_t> left_out;
    for (const std::uint32_t row : book_.rows().considered) {
      if (book_.rows().passes[row] == 0) left_out.push_back(row);
    }
    for (std::size_t i = 0; i + 1 < axes_.size(); ++i) {
      behind_.push_back(line_bundles(set, left_out, axes_[i], axes_[i + 1], shares, kPlacesToldApart));
      front_.push_back(line_bundles(set, book_.rows().rows, axes_[i], axes_[i + 1], shares, kPlacesToldApart));
    }
  }
  setAccessibleDescription(axes_.size() < 2 ? tr("No two figures vary")
                                            : tr("%1 recipes over %2 axes, coloured by %3")
                                                  .arg(count_text(static_cast<std::int64_t>(book_.rows().rows.size())))
                                                  .arg(axes_.size())
                                                  .arg(text_of(result_fields()[color_].label)));
  update();
}

QRectF ParallelPlot::plot_area() const {
  const double line = fontMetrics().height();
  return QRectF(rect()).adjusted(30, 2.4 * line + 6, -44, -(line + 12));
}

double ParallelPlot::axis_x(std::size_t index) const {
  const QRectF area = plot_area();
  if (axes_.size() < 2) return area.center().x();
  return area.left() + area.width() * static_cast<double>(index) / static_cast<double>(axes_.size() - 1);
}
double ParallelPlot::place_y(double place) const { return plot_area().bottom() - place * plot_area().height(); }
double ParallelPlot::share_at(double y) const {
  return std::clamp((plot_area().bottom() - y) / std::max(1.0, plot_area().height()), 0.0, 1.0);
}

std::optional<std::size_t> ParallelPlot::axis_at(double x) const {
  if (axes_.empty()) return std::nullopt;
  std::size_t nearest = 0;
  for (std::size_t i = 1; i < axes_.size(); ++i) {
    if (std::abs(axis_x(i) - x) < std::abs(axis_x(nearest) - x)) nearest = i;
  }
  constexpr double kReach = 26.0;
  return std::abs(axis_x(nearest) - x) <= kReach ? std::optional(nearest) : std::nullopt;
}

void ParallelPlot::brush(std::size_t axis, double from, double to) {
  was_brushed_ = true;
  ResultFilter filter = book_.filter();
  // A little around the places, so that a stop under the pointer is inside.
  constexpr double kSlack = 0.012;
  const FilterTerm term = brush_between(*book_.set(), axes_[axis], std::min(from, to) - kSlack, std::max(from, to) + kSlack);
  if (std::isinf(term.low) && std::isinf(term.high) && term.low < 0.0 && term.values.empty() && term.words.isEmpty())
    clear_brush(filter, axes_[axis].field);
  else
    set_brush(filter, term);
  book_.set_filter(filter);
}

void ParallelPlot::mousePressEvent(QMouseEvent* event) {
  drag_ = Drag::kNone;
  const auto axis = axis_at(event->position().x());
  if (event->button() != Qt::LeftButton || !axis) return;
  pressed_ = now_ = event->position();
  dragged_ = focus_ = *axis;
  drag_ = pressed_.y() < plot_area().top() - 6 ? Drag::kTitle : Drag::kBrush;
  announce_axis();
  update();
}

void ParallelPlot::mouseMoveEvent(QMouseEvent* event) {
  now_ = event->position();
  if (drag_ == Drag::kNone) {
    const auto axis = axis_at(now_.x());
    setCursor(!axis ? Qt::ArrowCursor : now_.y() < plot_area().top() - 6 ? Qt::OpenHandCursor : Qt::SplitVCursor);
    return;
  }
  if (drag_ == Drag::kBrush && std::abs(now_.y() - pressed_.y()) > kClick)
    brush(dragged_, share_at(pressed_.y()), share_at(now_.y()));
  update();
}

void ParallelPlot::mouseReleaseEvent(QMouseEvent* event) {
  now_ = event->position();
  const Drag was = drag_;
  drag_ = Drag::kNone;
  if (was == Drag::kNone || dragged_ >= axes_.size()) return;
  if (was == Drag::kBrush) {
    if (std::abs(now_.y() - pressed_.y()) <= kClick) {
      keep_all(dragged_);
    }
  } else if (std::abs(now_.x() - pressed_.x()) > kClick) {
    std::size_t target = 0;
    for (std::size_t i = 1; i < axes_.size(); ++i) {
      if (std::abs(axis_x(i) - now_.x()) < std::abs(axis_x(target) - now_.x())) target = i;
    }
    const ParallelAxis moved = axes_[dragged_];
    axes_.erase(axes_.begin() + static_cast<std::ptrdiff_t>(dragged_));
    axes_.insert(axes_.begin() + static_cast<std::ptrdiff_t>(target), moved);
    focus_ = target;
    ranks_.clear();
    for (const ParallelAxis& axis : axes_) ranks_.push_back(axis.field);
    refold();
  }
  update();
}

void ParallelPlot::mouseDoubleClickEvent(QMouseEvent* event) {
  const auto axis = axis_at(event->position().x());
  if (!axis || event->position().y() >= plot_area().top() - 6) return;
  focus_ = *axis;
  flip(focus_);
  announce_axis();
}

void ParallelPlot::flip(std::size_t axis) {
  const std::size_t field = axes_[axis].field;
  if (std::erase(flipped_, field) == 0) flipped_.push_back(field);
  axes_[axis].flipped = !axes_[axis].flipped;
  refold();
}

void ParallelPlot::toggle_logarithmic(std::size_t axis) {
  const std::size_t field = axes_[axis].field;
  const QString why = why_not_logarithmic(*book_.set(), book_.rows().considered, axes_[axis]);
  if (!why.isEmpty()) {
    emit said(tr("%1 cannot be logarithmic: %2").arg(text_of(result_fields()[field].label), why));
    return;
  }
  if (std::erase(logarithmic_, field) == 0) logarithmic_.push_back(field);
  set_logarithmic(*book_.set(), book_.rows().considered, !axes_[axis].logarithmic, axes_[axis]);
  refold();
}

void ParallelPlot::keep_all(std::size_t axis) {
  ResultFilter filter = book_.filter();
  clear_brush(filter, axes_[axis].field);
  book_.set_filter(filter);
}

QStringList ParallelPlot::logarithmic_fields() const {
  QStringList keys;
  for (const std::size_t field : logarithmic_) keys.append(text_of(result_fields()[field].key));
  return keys;
}

void ParallelPlot::set_logarithmic_fields(const QStringList& keys) {
  logarithmic_.clear();
  for (std::size_t field = 0; field < result_fields().size(); ++field) {
    if (keys.contains(text_of(result_fields()[field].key))) logarithmic_.push_back(field);
  }
  lay_out();
}

std::unique_ptr<QMenu> ParallelPlot::menu_of(std::size_t axis) {
  auto menu = std::make_unique<QMenu>(this);
  const auto add = [&](const QString& text, void (ParallelPlot::*run)(std::size_t)) {
    QAction* action = menu->addAction(text);
    connect(action, &QAction::triggered, this, [this, axis, run] {
      (this->*run)(axis);
      announce_axis();
    });
    return action;
  };
  QAction* logarithmic = add(tr("&Logarithmic\tL"), &ParallelPlot::toggle_logarithmic);
  logarithmic->setCheckable(true);
  logarithmic->setChecked(axes_[axis].logarithmic);
  if (const QString why = why_not_logarithmic(*book_.set(), book_.rows().considered, axes_[axis]); !why.isEmpty()) {
    logarithmic->setEnabled(false);
    logarithmic->setText(tr("&Logarithmic: %1").arg(why));
  }
  QAction* turned = add(tr("&Turn over\tF"), &ParallelPlot::flip);
  turned->setCheckable(true);
  turned->setChecked(axes_[axis].flipped);
  add(tr("&Keep all\tDelete"), &ParallelPlot::keep_all);
  return menu;
}

void ParallelPlot::contextMenuEvent(QContextMenuEvent* event) {
  const auto axis = axis_at(event->pos().x());
  if (!axis || !book_.set()) return;
  focus_ = *axis;
  update();
  menu_of(*axis)->exec(event->globalPos());
}

void ParallelPlot::announce_axis() {
  if (focus_ >= axes_.size() || !book_.set()) return;
  const ParallelAxis& axis = axes_[focus_];
  const auto [low, high] = brush_places(*book_.set(), axis, book_.filter());
  QString text = tr("Axis %1").arg(header_text(result_fields()[axis.field]));
  for (const FilterTerm& term : book_.filter().terms) {
    if (term.brushed && term.field == axis.field) text += tr(", kept: %1").arg(text_of_term(term));
  }
  if (axis.logarithmic) text += tr(", logarithmic");
  if (low > high) text += tr(", all kept");
  setAccessibleDescription(text);
  QAccessibleEvent changed(this, QAccessible::DescriptionChanged);
  QAccessible::updateAccessibility(&changed);
}

void ParallelPlot::keyPressEvent(QKeyEvent* event) {
  if (axes_.empty() || !book_.set()) return QWidget::keyPressEvent(event);
  const bool move = (event->modifiers() & Qt::ControlModifier) != 0;
  const bool lower = (event->modifiers() & Qt::ShiftModifier) != 0;
  const ParallelAxis axis = axes_[focus_];
  const double step = axis.stops.size() > 1 ? 1.0 / static_cast<double>(axis.stops.size() - 1) : 0.05;
  auto [low, high] = brush_places(*book_.set(), axis, book_.filter());
  if (low > high) {
    low = 0.0;
    high = 1.0;
  }
  switch (event->key()) {
    case Qt::Key_Left:
    case Qt::Key_Right: {
      const std::size_t last = axes_.size() - 1;
      const std::size_t next = event->key() == Qt::Key_Left ? (focus_ > 0 ? focus_ - 1 : 0) : std::min(last, focus_ + 1);
      if (move && next != focus_) {
        std::swap(axes_[focus_], axes_[next]);
        ranks_.clear();
        for (const ParallelAxis& each : axes_) ranks_.push_back(each.field);
        refold();
      }
      focus_ = next;
      break;
    }
    case Qt::Key_Up:
    case Qt::Key_Down: {
      double& edge = lower ? low : high;
      edge = std::clamp(edge + (event->key() == Qt::Key_Up ? step : -step), 0.0, 1.0);
      if (low > high) (lower ? high : low) = edge;
      brush(focus_, low, high);
      break;
    }
    case Qt::Key_F: {
      flip(focus_);
      break;
    }
    case Qt::Key_L:
      toggle_logarithmic(focus_);
      break;
    case Qt::Key_Menu:
      menu_of(focus_)->exec(mapToGlobal(QPointF(axis_x(focus_), plot_area().top()).toPoint()));
      break;
    case Qt::Key_Delete:
    case Qt::Key_Backspace:
    case Qt::Key_Home: {
      if (event->key() != Qt::Key_Home) {
        keep_all(focus_);
        break;
      }
      ResultFilter filter = book_.filter();
      std::erase_if(filter.terms, [](const FilterTerm& term) { return term.brushed; });
      book_.set_filter(filter);
      break;
    }
    default:
      return QWidget::keyPressEvent(event);
  }
  announce_axis();
  update();
}

bool ParallelPlot::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip && !axes_.empty()) {
    const auto* help = static_cast<QHelpEvent*>(event);
    if (const auto axis = axis_at(help->pos().x())) {
      const ResultField& field = result_fields()[axes_[*axis].field];
      QToolTip::showText(help->globalPos(),
                         tr("%1: %2.\nDrag along it keeps what passes there, a click keeps all. Drag the title to move the axis, "
                            "double-click it to turn it over.\nKeys: left and right choose an axis, up and down move the upper "
                            "edge, with Shift the lower one, F turns over, L makes it logarithmic, Delete keeps all.")
                             .arg(header_text(field), text_of(field.help)),
                         this);
    } else {
      QToolTip::hideText();
    }
    return true;
  }
  return QWidget::event(event);
}

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
  QFont font = this->font();
  font.setBold(true);
  painter.setFont(font);
  painter.setPen(focused ? t.accent : t.text);
  const double room = axes_.size() > 1 ? area.width() / static_cast<double>(axes_.size() - 1) : area.width();
  const double line = fontMetrics().height();
  // A long title is written smaller before it is cut.
  if (const double wide = QFontMetricsF(font).horizontalAdvance(text_of(field.label)); wide > room - 6 && room > 20)
    font.setPointSizeF(font.pointSizeF() * std::max(0.78, (room - 6) / wide));
  painter.setFont(font);
  const QFontMetricsF metrics(font);
  // At the edges a title may not leave the picture.
  const auto centered = [&](double y, const QString& text) {
    const double width = std::min(metrics.horizontalAdvance(text) + 2, room - 4);
    const double left = std::clamp(x - width / 2, 4.0, this->width() - width - 4.0);
    painter.drawText(QRectF(left, y, width, line), Qt::AlignCenter, metrics.elidedText(text, Qt::ElideRight, width));
  };
  centered(4, text_of(field.label) + (axis.flipped ? QStringLiteral(" ↓") : QString()));
  font = this->font();
  font.setPointSizeF(font.pointSizeF() * 0.88);
  painter.setFont(font);
  painter.setPen(t.muted);
  QStringList below;
  if (!field.unit.empty()) below.append(text_of(field.unit));
  if (axis.logarithmic) below.append(tr("log"));
  if (!below.isEmpty()) centered(4 + line, below.join(QStringLiteral(", ")));
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
