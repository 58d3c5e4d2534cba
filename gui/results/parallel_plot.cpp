#include "gui/results/parallel_plot.h"

#include <QAccessible>
#include <QContextMenuEvent>
#include <QHelpEvent>
#include <QMenu>
#include <QMouseEvent>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "gui/look/figures.h"
#include "gui/results/result_table.h"

namespace cpfit::gui {

namespace {

constexpr int kPlacesToldApart = 160;
constexpr double kLeftMargin = 30.0, kRightMargin = 44.0;
constexpr double kClick = 4.0;  // pixels within which a press is no drag

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
  measure_titles();
  refold();
}

void ParallelPlot::resizeEvent(QResizeEvent* event) {
  measure_titles();
  QWidget::resizeEvent(event);
}

void ParallelPlot::changeEvent(QEvent* event) {
  if (event->type() == QEvent::FontChange) measure_titles();
  QWidget::changeEvent(event);
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
  const double title_lines = titles_take_turns_ ? 3.4 : 2.4;
  return QRectF(rect()).adjusted(kLeftMargin, title_lines * line + 6, -kRightMargin, -(line + 12));
}

double ParallelPlot::axis_distance() const {
  return (width() - kLeftMargin - kRightMargin) / static_cast<double>(std::max<std::size_t>(2, axes_.size()) - 1);
}

void ParallelPlot::measure_titles() {
  const QFontMetricsF metrics(title_font());
  titles_take_turns_ = std::ranges::any_of(axes_, [&](const ParallelAxis& axis) {
    return metrics.horizontalAdvance(text_of(result_fields()[axis.field].label)) > axis_distance() - 6;
  });
}

QFont ParallelPlot::title_font() const {
  QFont bold = font();
  bold.setBold(true);
  return bold;
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

}  // namespace cpfit::gui
