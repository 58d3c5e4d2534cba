#include "gui/results/pareto_plot.h"

#include <qcustomplot.h>

#include <QToolTip>
#include <QVBoxLayout>
#include <algorithm>
#include <array>
#include <cmath>

#include "gui/look/color_tokens.h"
#include "gui/look/figures.h"
#include "gui/view/plot_look.h"

namespace cpfit::gui {

namespace {

constexpr double kReachPixels = 14.0;

}  // namespace

ParetoPlot::ParetoPlot(ResultBook& book, Selection& selection, QWidget* parent)
    : QWidget(parent), book_(book), selection_(selection), plot_(new QCustomPlot(this)) {
  plot_->setAccessibleName(tr("Speed against peak memory"));
  plot_->setObjectName(QStringLiteral("pareto"));
  plot_->setFocusPolicy(Qt::StrongFocus);
  plot_->setMouseTracking(true);
  plot_->installEventFilter(this);
  plot_->setSelectionRectMode(QCP::srmCustom);
  plot_->xAxis->setLabel(tr("peak memory, GiB"));
  plot_->setMinimumSize(240, 150);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(plot_);
  setFocusProxy(plot_);
  connect(plot_->selectionRect(), &QCPSelectionRect::accepted, this,
          [this](const QRect& area, const QMouseEvent*) { keep_inside(area.normalized()); });
  connect(&book_, &ResultBook::rows_changed, this, &ParetoPlot::redraw);
  connect(&selection_, &Selection::changed, this, [this](const Selected& before) {
    if (before.run_a != selection_.now().run_a || before.run_b != selection_.now().run_b) redraw();
  });
  redraw();
}

QPointF ParetoPlot::place_of_row(std::uint32_t row) const {
  const ResultSet& set = *book_.set();
  return {plot_->xAxis->coordToPixel(set.columns[ResultBook::memory_field()].values[row]),
          plot_->yAxis->coordToPixel(set.columns[book_.speed_field()].values[row])};
}

std::optional<std::uint32_t> ParetoPlot::row_at(const QPointF& at) const {
  if (book_.is_empty()) return std::nullopt;
  std::optional<std::uint32_t> nearest;
  double least = kReachPixels * kReachPixels;
  const auto look = [&](std::uint32_t row, double favour) {
    const QPointF d = place_of_row(row) - at;
    const double distance = (d.x() * d.x() + d.y() * d.y()) * favour;
    if (distance >= least) return;
    least = distance;
    nearest = row;
  };
  for (const std::uint32_t row : book_.rows().rows) look(row, 1.0);
  // Of two marks on one place the one on the front is meant.
  for (const std::uint32_t row : book_.rows().front) look(row, 0.9);
  return nearest;
}

void ParetoPlot::redraw() {
  plot_->clearPlottables();
  plot_->clearItems();
  plot_->legend->setVisible(false);
  dress(*plot_);
  const ResultField& speed = result_fields()[book_.speed_field()];
  plot_->yAxis->setLabel(speed.key == "tokens" ? tr("tokens per second and GPU") : tr("step time, s"));
  if (book_.is_empty()) {
    auto* text = new QCPItemText(plot_);
    text->position->setType(QCPItemPosition::ptAxisRectRatio);
    text->position->setCoords(0.5, 0.5);
    text->setText(tr("Marks appear here when\nthe search has found recipes."));
    text->setColor(tokens_for(palette()).muted);
    text->setFont(plot_->font());
    plot_->setAccessibleDescription(tr("No recipes to show"));
    fitted_ = false;
    plot_->replot(QCustomPlot::rpQueuedReplot);
    return;
  }
  draw_marks();
  draw_front();
  if (drawn_ != book_.set()) fitted_ = false;
  drawn_ = book_.set();
  if (!fitted_) fit();
  draw_choice();
  plot_->setAccessibleDescription(tr("%1 recipes, %2 of them on the front")
                                      .arg(count_text(static_cast<std::int64_t>(book_.rows().rows.size())))
                                      .arg(book_.rows().front.size()));
  plot_->replot(QCustomPlot::rpQueuedReplot);
}

void ParetoPlot::draw_marks() {
  const ColorTokens& t = tokens_for(palette());
  const ResultSet& set = *book_.set();
  const std::vector<double>& memory = set.columns[ResultBook::memory_field()].values;
  const std::vector<double>& speed = set.columns[book_.speed_field()].values;
  struct Kind {
    QString name;
    QCPScatterStyle style;
    QVector<double> x, y;
  };
  const auto disc = [](QCPScatterStyle::ScatterShape shape, const QColor& pen, const QColor& fill, double size) {
    QCPScatterStyle style(shape, QPen(pen, 1.2), fill.isValid() ? QBrush(fill) : QBrush(Qt::NoBrush), size);
    return style;
  };
  QColor body = t.attention;
  body.setAlphaF(0.35F);
  std::array<Kind, 4> kinds = {
      {{tr("fits and hides"), disc(QCPScatterStyle::ssDisc, mixed(t.surface, t.attention, 0.6), body, 5.5), {}, {}},
       {tr("fits, exposes or too slow"), disc(QCPScatterStyle::ssTriangle, t.exposed, {}, 6.5), {}, {}},
       {tr("at risk"), disc(QCPScatterStyle::ssDiamond, t.warn, {}, 7.0), {}, {}},
       {tr("does not fit"), disc(QCPScatterStyle::ssCross, t.bad, {}, 5.5), {}, {}}}};
  for (const std::uint32_t row : book_.rows().rows) {
    Kind& kind = kinds[set.candidates[row].verdict.fit == Fit::kOom                                          ? 3U
                       : set.candidates[row].verdict.fit == Fit::kAtRisk                                     ? 2U
                       : set.verdicts[row] == RowVerdict::kExposed || set.verdicts[row] == RowVerdict::kSlow ? 1U
                                                                                                             : 0U];
    kind.x.append(memory[row]);
    kind.y.append(speed[row]);
  }
  // Beyond this many marks smooth edges cost more than they show.
  const bool many = book_.rows().rows.size() > 20'000;
  int shown = 0;
  for (std::size_t i = kinds.size(); i-- > 0;) {
    Kind& kind = kinds[i];
    if (kind.x.isEmpty()) continue;
    QCPGraph* graph = plot_->addGraph();
    graph->setLineStyle(QCPGraph::lsNone);
    graph->setScatterStyle(kind.style);
    graph->setAntialiasedScatters(!many);
    graph->setData(kind.x, kind.y);
    graph->setName(kind.name);
    ++shown;
  }
  plot_->legend->setVisible(shown > 0);
}

void ParetoPlot::draw_front() {
  const ColorTokens& t = tokens_for(palette());
  const ResultSet& set = *book_.set();
  const std::vector<double>& memory = set.columns[ResultBook::memory_field()].values;
  const std::vector<double>& speed = set.columns[book_.speed_field()].values;
  QVector<double> x, y;
  for (const std::uint32_t row : book_.rows().front) {
    x.append(memory[row]);
    y.append(speed[row]);
  }
  if (!x.isEmpty()) {
    QCPGraph* front = plot_->addGraph();
    front->setData(x, y, true);
    front->setLineStyle(QCPGraph::lsStepLeft);
    front->setPen(QPen(t.text, 1.6));
    front->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssCircle, QPen(t.text, 1.6), QBrush(t.attention), 8));
    front->setName(tr("front: nothing is better in both"));
  }
  const double capacity = set.scenario->cluster.gpu.memory_usable.value() / kGiB;
  auto* line = new QCPItemStraightLine(plot_);
  for (QCPItemPosition* point : {line->point1, line->point2}) point->setTypeY(QCPItemPosition::ptAxisRectRatio);
  line->point1->setCoords(capacity, 0.0);
  line->point2->setCoords(capacity, 1.0);
  line->setPen(QPen(t.bad, 1.6));
  auto* label = new QCPItemText(plot_);
  label->position->setTypeY(QCPItemPosition::ptAxisRectRatio);
  label->position->setCoords(capacity, 0.99);
  label->setPositionAlignment(Qt::AlignRight | Qt::AlignBottom);
  label->setText(tr("capacity "));
  label->setColor(t.bad);
  label->setFont(plot_->font());
}

void ParetoPlot::fit() {
  if (book_.is_empty()) return;
  const ResultSet& set = *book_.set();
  const std::vector<double>& memory = set.columns[ResultBook::memory_field()].values;
  const std::vector<double>& speed = set.columns[book_.speed_field()].values;
  double x0 = std::numeric_limits<double>::infinity(), x1 = -x0, y0 = x0, y1 = -x0;
  for (const std::uint32_t row : book_.rows().rows) {
    x0 = std::min(x0, memory[row]);
    x1 = std::max(x1, memory[row]);
    y0 = std::min(y0, speed[row]);
    y1 = std::max(y1, speed[row]);
  }
  if (!(x0 <= x1)) return;
  // What does not fit at all may lie far away: the picture is of the devices' size.
  const double capacity = set.scenario->cluster.gpu.memory_usable.value() / kGiB;
  x1 = std::min(std::max(x1, capacity), std::max(2.0 * capacity, x0 * 1.2));
  show_span(*plot_->xAxis, x0, x1, 0.06);
  show_span(*plot_->yAxis, y0, y1, 0.08);
  // The legend stands where the front is not: fast is low for times, high for rates.
  const bool low = result_fields()[book_.speed_field()].better == Better::kLess;
  plot_->axisRect()->insetLayout()->setInsetAlignment(0, Qt::AlignRight | (low ? Qt::AlignTop : Qt::AlignBottom));
  fitted_ = true;
}

void ParetoPlot::draw_named(std::uint32_t row, const QString& name, const QColor& color, int shape) {
  const ResultSet& set = *book_.set();
  const double x = set.columns[ResultBook::memory_field()].values[row], y = set.columns[book_.speed_field()].values[row];
  if (shape >= 0) {
    QCPGraph* mark = plot_->addGraph();
    mark->setLineStyle(QCPGraph::lsNone);
    mark->setScatterStyle(QCPScatterStyle(static_cast<QCPScatterStyle::ScatterShape>(shape), QPen(color, 2.2), Qt::NoBrush, 15));
    mark->setData({x}, {y});
    mark->removeFromLegend();
  }
  if (name.isEmpty()) return;
  auto* label = new QCPItemText(plot_);
  label->position->setCoords(x, y);
  // Inside the picture whichever edge is near; below where there is room, since no front passes left and below of its own mark.
  constexpr int kRoom = 28;
  const bool right = plot_->xAxis->coordToPixel(x) > plot_->axisRect()->center().x();
  const bool below = plot_->axisRect()->bottom() - plot_->yAxis->coordToPixel(y) > kRoom;
  label->setPositionAlignment((right ? Qt::AlignRight : Qt::AlignLeft) | (below ? Qt::AlignTop : Qt::AlignBottom));
  label->setPadding(QMargins(9, 7, 9, 7));
  label->setText(name);
  label->setColor(color);
  QFont font = plot_->font();
  font.setBold(true);
  label->setFont(font);
}

void ParetoPlot::draw_choice() {
  const ColorTokens& t = tokens_for(palette());
  const ResultSet& set = *book_.set();
  const auto shown = [this](std::uint32_t row) { return book_.rows().passes[row] != 0; };
  const bool one = set.ship && set.control && *set.ship == *set.control;  // two names in one place cannot be read
  if (set.ship && shown(*set.ship))
    draw_named(*set.ship, one ? tr("ships, is the control") : tr("ships"), t.good, QCPScatterStyle::ssStar);
  if (set.control && shown(*set.control))
    draw_named(*set.control, one ? QString() : tr("control"), t.muted, QCPScatterStyle::ssDiamond);
  if (const auto row = book_.other(); row && shown(*row))
    draw_named(*row, QStringLiteral("B"), t.accent, QCPScatterStyle::ssSquare);
  if (const auto row = book_.chosen(); row && shown(*row)) draw_named(*row, {}, t.accent, QCPScatterStyle::ssCircle);
}

void ParetoPlot::keep_inside(const QRect& area) {
  if (book_.is_empty()) return;
  constexpr int kSmallest = 6;
  if (area.width() < kSmallest || area.height() < kSmallest) return;
  ResultFilter filter = book_.filter();
  const auto term = [&](std::size_t field, const QCPAxis& axis, double from, double to) {
    const double a = axis.pixelToCoord(from), b = axis.pixelToCoord(to);
    FilterTerm kept;
    kept.field = field;
    kept.low = std::min(a, b);
    kept.high = std::max(a, b);
    return kept;
  };
  set_brush(filter, term(ResultBook::memory_field(), *plot_->xAxis, area.left(), area.right()));
  set_brush(filter, term(book_.speed_field(), *plot_->yAxis, area.top(), area.bottom()));
  book_.set_filter(filter);
}

void ParetoPlot::walk(int by) {
  const std::vector<std::uint32_t>& front = book_.rows().front;
  if (front.empty()) return;
  const auto chosen = book_.chosen();
  const auto at = chosen ? std::ranges::find(front, *chosen) : front.end();
  const auto last = static_cast<std::ptrdiff_t>(front.size()) - 1;
  const std::ptrdiff_t next = at == front.end() ? 0 : std::clamp<std::ptrdiff_t>(at - front.begin() + by, 0, last);
  const std::uint32_t row = front[static_cast<std::size_t>(next)];
  book_.choose(row, this);
  plot_->setAccessibleDescription(tr("front, %1 of %2: %3").arg(next + 1).arg(front.size()).arg(book_.row_text(row)));
}

bool ParetoPlot::eventFilter(QObject* watched, QEvent* event) {
  if (watched != plot_ || book_.is_empty()) return QWidget::eventFilter(watched, event);
  constexpr double kStep = 0.8;
  const auto zoom = [this](double factor, const QPointF& around) {
    plot_->xAxis->scaleRange(factor, plot_->xAxis->pixelToCoord(around.x()));
    plot_->yAxis->scaleRange(factor, plot_->yAxis->pixelToCoord(around.y()));
    plot_->replot();
  };
  switch (event->type()) {
    case QEvent::Wheel: {
      const auto* wheel = static_cast<QWheelEvent*>(event);
      if ((wheel->modifiers() & Qt::ControlModifier) == 0) return false;
      zoom(std::pow(kStep, wheel->angleDelta().y() / 120.0), wheel->position());
      return true;
    }
    case QEvent::MouseButtonRelease: {
      // A press that did not move chooses; a drag is the selection rectangle's.
      const auto* mouse = static_cast<QMouseEvent*>(event);
      const QRectF drawn = plot_->selectionRect()->isActive() ? QRectF(plot_->selectionRect()->rect()).normalized() : QRectF();
      if (mouse->button() == Qt::LeftButton && drawn.width() < 5 && drawn.height() < 5) {
        if (const auto row = row_at(mouse->position())) {
          if ((mouse->modifiers() & Qt::ShiftModifier) != 0)
            book_.choose_other(*row, this);
          else
            book_.choose(*row, this);
        }
      }
      return false;
    }
    case QEvent::MouseButtonDblClick:
      if (const auto row = row_at(static_cast<QMouseEvent*>(event)->position())) book_.take(*row);
      return true;
    case QEvent::ToolTip: {
      const auto* help = static_cast<QHelpEvent*>(event);
      const auto row = row_at(help->pos());
      if (row)
        QToolTip::showText(help->globalPos(), book_.row_text(*row), plot_);
      else
        QToolTip::hideText();
      return true;
    }
    case QEvent::KeyPress:
      switch (static_cast<QKeyEvent*>(event)->key()) {
        case Qt::Key_W:
        case Qt::Key_Plus:
          zoom(kStep, plot_->axisRect()->center());
          return true;
        case Qt::Key_S:
        case Qt::Key_Minus:
          zoom(1.0 / kStep, plot_->axisRect()->center());
          return true;
        case Qt::Key_Home:
          fit();
          redraw();
          return true;
        case Qt::Key_Left:
        case Qt::Key_Right:
          walk(static_cast<QKeyEvent*>(event)->key() == Qt::Key_Left ? -1 : 1);
          return true;
        case Qt::Key_Return:
        case Qt::Key_Enter:
          if (const auto row = book_.chosen()) book_.take(*row);
          return true;
        default:
          return false;
      }
    default:
      return QWidget::eventFilter(watched, event);
  }
}

void ParetoPlot::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  // The plot has its new palette only after this event.
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange)
    QMetaObject::invokeMethod(this, &ParetoPlot::redraw, Qt::QueuedConnection);
}

}  // namespace cpfit::gui
