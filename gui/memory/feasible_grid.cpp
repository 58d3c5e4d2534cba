#include "gui/memory/feasible_grid.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QPainterPath>
#include <QToolTip>
#include <algorithm>

#include "gui/look/color_tokens.h"
#include "gui/look/figures.h"
#include "gui/look/hatch.h"
#include "gui/memory/sweep_figures.h"

namespace cpfit::gui {

namespace {

constexpr double kLeft = 62.0, kRight = 14.0, kTop = 12.0, kBottom = 66.0;

void paint_cell(QPainter& painter, const QRectF& place, CellState state, const ColorTokens& t) {
  switch (state) {
    case CellState::kFeasible:
      painter.fillRect(place, mixed(t.surface, t.good, 0.62));
      break;
    case CellState::kExposed:
      painter.fillRect(place, mixed(t.surface, t.exposed, 0.22));
      paint_hatch(painter, place, Hatch::kExposed, mixed(t.surface, t.exposed, 0.85));
      break;
    case CellState::kAtRisk:
      painter.fillRect(place, mixed(t.surface, t.warn, 0.28));
      paint_hatch(painter, place, Hatch::kRisk, mixed(t.surface, t.warn, 0.7));
      break;
    case CellState::kTooMuch:
      painter.fillRect(place, mixed(t.surface, t.bad, 0.2));
      painter.setPen(QPen(mixed(t.surface, t.bad, 0.75), 1.2));
      painter.drawLine(place.center() + QPointF(-4, -4), place.center() + QPointF(4, 4));
      painter.drawLine(place.center() + QPointF(-4, 4), place.center() + QPointF(4, -4));
      break;
    case CellState::kIllegal:
      painter.fillRect(place, mixed(t.surface, t.text, 0.05));
      paint_hatch(painter, place, Hatch::kIdle, mixed(t.surface, t.text, 0.45));
      break;
  }
}

}  // namespace

FeasibleGrid::FeasibleGrid(QWidget* parent) : QWidget(parent) {
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName(tr("Feasible CP degrees by sequence length"));
}

void FeasibleGrid::show_sweep(std::shared_ptr<const Sweep> sweep, const Design& design) {
  sweep_ = std::move(sweep);
  design_ = design;
  focus_ = {};
  if (sweep_) {
    const auto column = std::ranges::find(sweep_->lengths, design.training().sequence.count());
    const auto row = std::ranges::find(sweep_->cps, design.recipe.cp);
    if (column != sweep_->lengths.end() && row != sweep_->cps.end())
      focus_ = {static_cast<int>(column - sweep_->lengths.begin()), static_cast<int>(row - sweep_->cps.begin())};
    setAccessibleDescription(text_at(focus_));
  }
  update();
}

QRectF FeasibleGrid::area() const { return QRectF(rect()).adjusted(kLeft, kTop, -kRight, -kBottom); }

QRectF FeasibleGrid::place(int column, int row) const {
  const QRectF all = area();
  const double w = all.width() / static_cast<double>(sweep_->lengths.size()),
               h = all.height() / static_cast<double>(sweep_->cps.size());
  // The lowest degree stands at the bottom.
  return {all.left() + w * column, all.bottom() - h * (row + 1), w, h};
}

FeasibleGrid::Cell FeasibleGrid::cell_at(const QPointF& at) const {
  if (!sweep_ || !area().contains(at)) return {};
  const QRectF one = place(0, 0);
  return {static_cast<int>((at.x() - area().left()) / one.width()), static_cast<int>((area().bottom() - at.y()) / one.height())};
}

QString FeasibleGrid::text_at(const Cell& cell) const {
  if (!sweep_ || cell.column < 0 || cell.row < 0) return {};
  const std::int32_t cp = sweep_->cps[static_cast<std::size_t>(cell.row)];
  const std::int64_t length = sweep_->lengths[static_cast<std::size_t>(cell.column)];
  const SweepPointOrReason* point = point_of(*sweep_, cp, length);
  if (point == nullptr) return {};
  const QString head = tr("CP %1 at %2 tokens, %3 GPUs: ").arg(cp).arg(tokens_text(length)).arg(point->gpus);
  if (!point->candidate) return head + text_of(point->reason);
  const Candidate& c = *point->candidate;
  return head + tr("%1; %2 of %3, step %4, exchange exposed %5 of it")
                    .arg(name_of(state_of(*point, design_.scenario->requirements)), bytes_text(c.memory.device),
                         bytes_text(c.verdict.capacity), time_text(c.time.step()), share_text(c.time.exposed_cp / c.time.step()));
}

void FeasibleGrid::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  paint(painter);
}

void FeasibleGrid::paint(QPainter& painter) const {
  painter.setRenderHint(QPainter::Antialiasing);
  const ColorTokens& t = tokens_for(palette());
  painter.fillRect(rect(), t.surface);
  if (!sweep_) return;
  QFont small = font();
  small.setPointSizeF(small.pointSizeF() * 0.88);
  painter.setFont(small);
  const int columns = static_cast<int>(sweep_->lengths.size()), rows = static_cast<int>(sweep_->cps.size());
  for (int column = 0; column < columns; ++column) {
    for (int row = 0; row < rows; ++row) {
      const SweepPointOrReason* point =
          point_of(*sweep_, sweep_->cps[static_cast<std::size_t>(row)], sweep_->lengths[static_cast<std::size_t>(column)]);
      if (point == nullptr) continue;
      paint_cell(painter, place(column, row).adjusted(1, 1, -1, -1), state_of(*point, design_.scenario->requirements), t);
    }
  }
  painter.setPen(t.muted);
  for (int row = 0; row < rows; ++row) {
    const QRectF at = place(0, row);
    painter.drawText(QRectF(4, at.top(), kLeft - 10, at.height()), Qt::AlignRight | Qt::AlignVCenter,
                     tr("CP %1").arg(sweep_->cps[static_cast<std::size_t>(row)]));
  }
  double free_from = area().left() - 10;
  for (int column = 0; column < columns; ++column) {
    const std::int64_t length = sweep_->lengths[static_cast<std::size_t>(column)];
    const QRectF at = place(column, 0);
    const QString text = tokens_text(length);
    const bool power = (length & (length - 1)) == 0 || length == sweep_->sequence;
    const double width = painter.fontMetrics().horizontalAdvance(text);
    if (!power || at.center().x() - width / 2 < free_from) continue;
    painter.drawText(QRectF(at.center().x() - width, area().bottom() + 4, 2 * width, 16), Qt::AlignHCenter | Qt::AlignTop, text);
    free_from = at.center().x() + width / 2 + 8;
  }
  painter.drawText(QRectF(area().left(), area().bottom() + 20, area().width(), 16), Qt::AlignRight | Qt::AlignTop,
                   tr("tokens per sequence"));
  paint_bounds(painter);
  paint_legend(painter);
  if (focus_.column >= 0) {
    const QRectF at = place(focus_.column, focus_.row);
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(t.surface, 4.5));
    painter.drawRoundedRect(at.adjusted(1, 1, -1, -1), 4, 4);
    painter.setPen(QPen(t.accent, hasFocus() ? 3.0 : 2.2));
    painter.drawRoundedRect(at.adjusted(1, 1, -1, -1), 4, 4);
    painter.setBrush(t.accent);
    painter.setPen(QPen(t.surface, 1.5));
    painter.drawEllipse(at.center(), 5, 5);
  }
}

void FeasibleGrid::paint_bounds(QPainter& painter) const {
  const ColorTokens& t = tokens_for(palette());
  // Floor: under the lowest degree that fits; ceiling: above the highest that hides. Both step with the length.
  QPainterPath floor, ceiling;
  bool floor_open = false, ceiling_open = false;
  const auto row_of = [&](std::int32_t cp) { return static_cast<int>(std::ranges::find(sweep_->cps, cp) - sweep_->cps.begin()); };
  for (int column = 0; column < static_cast<int>(sweep_->lengths.size()); ++column) {
    const LengthAnswer answer =
        answer_at(*sweep_, sweep_->lengths[static_cast<std::size_t>(column)], design_.scenario->requirements);
    const auto step = [&](QPainterPath& path, bool& open, double y) {
      const QRectF at = place(column, 0);
      if (open)
        path.lineTo(at.left(), y);
      else
        path.moveTo(at.left(), y);
      path.lineTo(at.right(), y);
      open = true;
    };
    if (answer.fit.empty())
      floor_open = false;
    else
      step(floor, floor_open, place(column, row_of(answer.fit.front())).bottom());
    if (answer.hide.empty())
      ceiling_open = false;
    else
      step(ceiling, ceiling_open, place(column, row_of(answer.hide.back())).top());
  }
  painter.setBrush(Qt::NoBrush);
  for (const auto& [path, color, style] :
       {std::tuple(&floor, t.bad, Qt::SolidLine), std::tuple(&ceiling, t.exposed, Qt::DashLine)}) {
    painter.setPen(QPen(t.surface, 5));
    painter.drawPath(*path);
    painter.setPen(QPen(color, 2.6, style));
    painter.drawPath(*path);
  }
}

void FeasibleGrid::paint_legend(QPainter& painter) const {
  const ColorTokens& t = tokens_for(palette());
  double x = area().left();
  const double y = height() - 24;
  for (const CellState state :
       {CellState::kFeasible, CellState::kExposed, CellState::kAtRisk, CellState::kTooMuch, CellState::kIllegal}) {
    const QRectF box(x, y, 18, 12);
    paint_cell(painter, box, state, t);
    const QString text = name_of(state);
    painter.setPen(t.text);
    painter.drawText(QPointF(x + 23, y + 10.5), text);
    x += 23 + painter.fontMetrics().horizontalAdvance(text) + 16;
  }
  for (const auto& [text, color, style] :
       {std::tuple(tr("memory floor"), t.bad, Qt::SolidLine), std::tuple(tr("overlap ceiling"), t.exposed, Qt::DashLine)}) {
    if (x + 30 + painter.fontMetrics().horizontalAdvance(text) > width()) break;
    painter.setPen(QPen(color, 2.6, style));
    painter.drawLine(QPointF(x, y + 6), QPointF(x + 22, y + 6));
    painter.setPen(t.text);
    painter.drawText(QPointF(x + 27, y + 10.5), text);
    x += 27 + painter.fontMetrics().horizontalAdvance(text) + 16;
  }
}

void FeasibleGrid::walk(int columns, int rows) {
  if (!sweep_) return;
  focus_.column = std::clamp(focus_.column + columns, 0, static_cast<int>(sweep_->lengths.size()) - 1);
  focus_.row = std::clamp(focus_.row + rows, 0, static_cast<int>(sweep_->cps.size()) - 1);
  setAccessibleDescription(text_at(focus_));
  emit pointed(text_at(focus_));
  update();
}

void FeasibleGrid::mousePressEvent(QMouseEvent* event) {
  const Cell cell = cell_at(event->position());
  if (cell.column < 0) return;
  focus_ = cell;
  walk(0, 0);
}

void FeasibleGrid::mouseDoubleClickEvent(QMouseEvent* event) {
  const Cell cell = cell_at(event->position());
  if (cell.column >= 0)
    emit taken(sweep_->cps[static_cast<std::size_t>(cell.row)], sweep_->lengths[static_cast<std::size_t>(cell.column)]);
}

void FeasibleGrid::keyPressEvent(QKeyEvent* event) {
  switch (event->key()) {
    case Qt::Key_Left:
      return walk(-1, 0);
    case Qt::Key_Right:
      return walk(1, 0);
    case Qt::Key_Up:
      return walk(0, 1);
    case Qt::Key_Down:
      return walk(0, -1);
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (sweep_ && focus_.column >= 0)
        emit taken(sweep_->cps[static_cast<std::size_t>(focus_.row)], sweep_->lengths[static_cast<std::size_t>(focus_.column)]);
      return;
    default:
      QWidget::keyPressEvent(event);
  }
}

bool FeasibleGrid::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    const QString text = text_at(cell_at(help->pos()));
    if (!text.isEmpty()) QToolTip::showText(help->globalPos(), QStringLiteral("<p>%1</p>").arg(text.toHtmlEscaped()), this);
    return true;
  }
  return QWidget::event(event);
}

}  // namespace cpfit::gui
