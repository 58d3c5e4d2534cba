#include "gui/calibration/surface_curve.h"

#include <qcustomplot.h>

#include <QEvent>
#include <QKeyEvent>
#include <QLabel>
#include <QMouseEvent>
#include <QToolTip>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "gui/calibration/exclusions.h"
#include "gui/calibration/plot_note.h"
#include "gui/look/color_tokens.h"
#include "gui/look/figures.h"
#include "gui/view/plot_look.h"
#include "sim/screen/composition.h"

namespace cpfit::gui {

namespace {

/// Powers of two with K, M, G on an axis of bytes or sizes.
void sizes_on(QCPAxis& axis, double low, double high) {
  axis.setScaleType(QCPAxis::stLogarithmic);
  const QSharedPointer<QCPAxisTickerText> ticker(new QCPAxisTickerText);
  const double first = std::ceil(std::log2(std::max(1.0, low))), last = std::floor(std::log2(std::max(2.0, high)));
  const double step = std::max(1.0, std::ceil((last - first) / 9.0));
  for (double exponent = first; exponent <= last; exponent += step) {
    const double value = std::exp2(exponent);
    const double gibi = 1024.0 * 1024.0 * 1024.0;
    const QString text = value >= gibi              ? QStringLiteral("%1 G").arg(value / gibi)
                         : value >= 1024.0 * 1024.0 ? QStringLiteral("%1 M").arg(value / 1024.0 / 1024.0)
                         : value >= 1024.0          ? QStringLiteral("%1 k").arg(value / 1024.0)
                                                    : QString::number(value);
    ticker->addTick(value, text);
  }
  axis.setTicker(ticker);
  axis.setRange(low, high);
}

}  // namespace

SurfaceCurve::SurfaceCurve(QWidget* parent) : QWidget(parent), headline_(new QLabel(this)), curve_(new QCustomPlot(this)) {
  headline_->setWordWrap(true);
  curve_->setAccessibleName(tr("Curve of the surface"));
  curve_->setFocusPolicy(Qt::StrongFocus);
  curve_->setMinimumHeight(150);
  curve_->installEventFilter(this);
  setFocusProxy(curve_);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(4);
  layout->addWidget(headline_);
  layout->addWidget(curve_, 1);
}

QString SurfaceCurve::headline() const { return headline_->text(); }

void SurfaceCurve::show_surface(std::shared_ptr<const KnownCalibration> known, std::size_t surface) {
  if (known != known_) {
    left_out_.clear();
    beside_.reset();
  }
  known_ = std::move(known);
  at_ = surface;
  chosen_.reset();
  draw();
}

void SurfaceCurve::set_marks(std::vector<char> left_out, std::optional<std::size_t> chosen,
                             std::shared_ptr<const KnownCalibration> beside) {
  if (left_out == left_out_ && chosen == chosen_ && beside == beside_) return;
  left_out_ = std::move(left_out);
  chosen_ = chosen;
  beside_ = std::move(beside);
  draw();
}

void SurfaceCurve::focus_plot() { curve_->setFocus(); }

bool SurfaceCurve::is_left_out(std::size_t point) const {
  return point < left_out_.size() ? left_out_[point] != 0 : known_->points[point].excluded;
}

bool SurfaceCurve::has_points() const {
  return known_ && std::ranges::any_of(known_->points, [&](const RatePoint& point) { return point.surface == at_; });
}

QPointF SurfaceCurve::place_of(std::size_t point) const {
  const QCPAxisRect* rect = curve_->axisRect(0);
  return {rect->axis(QCPAxis::atBottom)->coordToPixel(known_->points[point].x),
          rect->axis(QCPAxis::atLeft)->coordToPixel(known_->points[point].rate)};
}

std::optional<std::size_t> SurfaceCurve::point_at(const QPointF& at) const {
  constexpr double kReach = 12.0;
  std::optional<std::size_t> nearest;
  double least = kReach * kReach;
  for (std::size_t i = 0; known_ && i < known_->points.size(); ++i) {
    if (known_->points[i].surface != at_) continue;
    const QPointF d = place_of(i) - at;
    const double distance = QPointF::dotProduct(d, d);
    if (distance >= least) continue;
    least = distance;
    nearest = i;
  }
  return nearest;
}

bool SurfaceCurve::on_key(int key) {
  switch (key) {
    case Qt::Key_Left:
    case Qt::Key_Right:
      emit step_wanted(key == Qt::Key_Left ? -1 : 1);
      return true;
    case Qt::Key_X:
    case Qt::Key_Delete:
      emit toggle_wanted();
      return true;
    case Qt::Key_Menu:
      if (chosen_) emit menu_wanted(curve_->mapToGlobal(place_of(*chosen_).toPoint()));
      return true;
    default:
      return false;
  }
}

bool SurfaceCurve::on_click(const QPointF& at) {
  const std::optional<std::size_t> point = point_at(at);
  if (!point) return false;
  curve_->setFocus();
  emit point_clicked(*point);
  return true;
}

bool SurfaceCurve::eventFilter(QObject* watched, QEvent* event) {
  if (watched != curve_ || !has_points()) return QWidget::eventFilter(watched, event);
  switch (event->type()) {
    case QEvent::KeyPress: {
      const auto* key = static_cast<QKeyEvent*>(event);
      return (key->modifiers() & ~Qt::KeypadModifier) == Qt::NoModifier && on_key(key->key());
    }
    case QEvent::MouseButtonPress: {
      const auto* mouse = static_cast<QMouseEvent*>(event);
      if (mouse->button() == Qt::LeftButton) return on_click(mouse->position());
      if (mouse->button() != Qt::RightButton || !on_click(mouse->position())) return false;
      emit menu_wanted(mouse->globalPosition().toPoint());
      return true;
    }
    case QEvent::ToolTip: {
      const auto* help = static_cast<QHelpEvent*>(event);
      if (const auto point = point_at(help->pos()))
        QToolTip::showText(help->globalPos(), point_sentence(*known_, known_->points[*point]), curve_);
      else
        QToolTip::hideText();
      return true;
    }
    default:
      return false;
  }
}

void SurfaceCurve::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  // The plot has its new palette only after this event.
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange)
    QMetaObject::invokeMethod(this, &SurfaceCurve::draw, Qt::QueuedConnection);
}

void SurfaceCurve::draw() {
  curve_->clearPlottables();
  curve_->clearItems();
  while (curve_->plotLayout()->rowCount() > 1) {
    curve_->plotLayout()->remove(curve_->plotLayout()->element(curve_->plotLayout()->rowCount() - 1, 0));
    curve_->plotLayout()->simplify();
  }
  dress(*curve_);
  curve_->legend->setVisible(false);
  const ColorTokens& t = tokens_for(palette());
  if (!known_ || at_ >= known_->surfaces.size()) {
    headline_->setText(tr("No surface is chosen."));
    for (QCPAxis* axis : curve_->axisRect()->axes()) axis->setVisible(false);
    curve_->replot(QCustomPlot::rpQueuedReplot);
    return;
  }
  const Surface& surface = known_->surfaces[at_];
  const RateCurve picture = rate_curve(*known_, at_);
  const FitQuality& q = surface.quality;
  QString text = QStringLiteral("%1, %2: %3").arg(text_of(surface.device), text_of(surface.name), evidence_text(q.evidence));
  if (q.rows > 0) text += tr(" on %1 points").arg(count_text(q.rows));
  text += q.held_out > 0
              ? tr("; on shapes kept out median %1, 90 % within %2.").arg(share_text(q.median_error), share_text(q.p90_error))
              : tr("; taken to be within %1, 90 % within %2.").arg(share_text(q.median_error), share_text(q.p90_error));
  if (!picture.held.isEmpty()) text += tr(" Curve at %1.").arg(picture.held);
  headline_->setText(text);
  const bool drawn = !picture.x.empty();
  curve_->xAxis->setVisible(drawn);
  curve_->yAxis->setVisible(drawn);
  if (!drawn) {
    note_in(*curve_, picture.why_none);
    curve_->replot(QCustomPlot::rpQueuedReplot);
    return;
  }
  const QVector<double> x(picture.x.begin(), picture.x.end());
  QVector<double> y(picture.y.begin(), picture.y.end()), low, high;
  for (const double value : y) {
    // The interval is of the time: the rate is its inverse.
    low.append(value / (1.0 + kNinetyPercent * picture.sigma));
    high.append(value * (1.0 + kNinetyPercent * picture.sigma));
  }
  QCPGraph* lower = curve_->addGraph();
  lower->setData(x, low, true);
  lower->setPen(Qt::NoPen);
  lower->removeFromLegend();
  QCPGraph* band = curve_->addGraph();
  band->setData(x, high, true);
  band->setPen(Qt::NoPen);
  QColor fill = t.attention;
  fill.setAlphaF(0.18F);
  band->setBrush(fill);
  band->setChannelFillGraph(lower);
  band->setName(tr("90 % interval"));
  QCPGraph* line = curve_->addGraph();
  line->setData(x, y, true);
  line->setPen(QPen(t.attention, 2.2));
  line->setName(tr("fitted curve"));
  double top = *std::ranges::max_element(high);
  double left = x.front(), right = x.back();
  draw_points(top, left, right);
  draw_beside(top);
  const bool measured = has_points();
  curve_->xAxis->setLabel(measured ? QString() : picture.x_label);
  curve_->yAxis->setLabel(picture.y_label);
  curve_->yAxis->setRange(0.0, top * 1.08);
  sizes_on(*curve_->xAxis, left, right);
  // Where nothing was measured is shaded: a prediction there is an extrapolation.
  if (picture.valid_high > picture.valid_low) {
    for (const auto& [from, to] : {std::pair(left, picture.valid_low), std::pair(picture.valid_high, right)}) {
      if (to <= from) continue;
      auto* shade = new QCPItemRect(curve_);
      for (QCPItemPosition* corner : {shade->topLeft, shade->bottomRight}) corner->setTypeY(QCPItemPosition::ptAxisRectRatio);
      shade->topLeft->setCoords(from, 0.0);
      shade->bottomRight->setCoords(to, 1.0);
      shade->setPen(Qt::NoPen);
      shade->setBrush(QBrush(mixed(t.surface, t.muted, 0.35), Qt::BDiagPattern));
      shade->setLayer(QStringLiteral("background"));
    }
    auto* label = new QCPItemText(curve_);
    label->position->setTypeY(QCPItemPosition::ptAxisRectRatio);
    label->position->setCoords(std::sqrt(picture.valid_low * picture.valid_high), 0.99);
    label->setPositionAlignment(Qt::AlignHCenter | Qt::AlignBottom);
    label->setText(tr("fitted range"));
    label->setColor(t.muted);
    label->setFont(curve_->font());
  }
  curve_->legend->setVisible(true);
  curve_->axisRect()->insetLayout()->setInsetAlignment(0, Qt::AlignLeft | Qt::AlignTop);
  if (measured) {
    auto* rect = new QCPAxisRect(curve_);
    curve_->plotLayout()->addElement(1, 0, rect);
    curve_->plotLayout()->setRowStretchFactor(0, 2.2);
    dress(*curve_);
    draw_residuals(*rect);
    rect->axis(QCPAxis::atBottom)->setLabel(picture.x_label);
    sizes_on(*rect->axis(QCPAxis::atBottom), left, right);
    auto* margins = new QCPMarginGroup(curve_);
    curve_->axisRect(0)->setMarginGroup(QCP::msLeft, margins);
    rect->setMarginGroup(QCP::msLeft, margins);
  }
  curve_->setAccessibleDescription(text);
  curve_->replot(QCustomPlot::rpQueuedReplot);
}

void SurfaceCurve::draw_points(double& top, double& left, double& right) {
  for (const RatePoint& point : known_->points) {
    if (point.surface != at_) continue;
    top = std::max(top, point.rate);
    left = std::min(left, point.x);
    right = std::max(right, point.x);
  }
  if (has_points()) add_marks(*curve_->axisRect(0), false);
}

/// Filled: what the fit counts. Hollow: what it leaves out. A ring: the chosen one.
void SurfaceCurve::add_marks(QCPAxisRect& rect, bool residuals) {
  const ColorTokens& t = tokens_for(palette());
  constexpr double kMark = 6.5, kRing = 13.0;
  const auto graph = [&](const QString& name, const QCPScatterStyle& style) {
    QCPGraph* made = curve_->addGraph(rect.axis(QCPAxis::atBottom), rect.axis(QCPAxis::atLeft));
    made->setLineStyle(QCPGraph::lsNone);
    made->setScatterStyle(style);
    made->setName(name);
    if (residuals) made->removeFromLegend();
    return made;
  };
  const auto value = [&](const RatePoint& point) { return residuals ? point.residual * 100.0 : point.rate; };
  QVector<double> in_x, in_y, out_x, out_y;
  for (std::size_t i = 0; i < known_->points.size(); ++i) {
    const RatePoint& point = known_->points[i];
    if (point.surface != at_) continue;
    (is_left_out(i) ? out_x : in_x).append(point.x);
    (is_left_out(i) ? out_y : in_y).append(value(point));
  }
  const QPen pen(t.exposed, 1.3);
  graph(tr("measured, at their own shapes"), QCPScatterStyle(QCPScatterStyle::ssCircle, pen, QBrush(t.exposed), kMark))
      ->setData(in_x, in_y);
  if (!out_x.isEmpty())
    graph(tr("left out of the fit"), QCPScatterStyle(QCPScatterStyle::ssCircle, pen, Qt::NoBrush, kMark))->setData(out_x, out_y);
  if (!chosen_ || *chosen_ >= known_->points.size() || known_->points[*chosen_].surface != at_) return;
  const RatePoint& point = known_->points[*chosen_];
  QCPGraph* ring = graph(QString(), QCPScatterStyle(QCPScatterStyle::ssCircle, QPen(t.accent, 2.0), Qt::NoBrush, kRing));
  ring->setData({point.x}, {value(point)});
  if (!residuals) ring->removeFromLegend();
}

void SurfaceCurve::draw_beside(double& top) {
  if (!beside_) return;
  const Surface& mine = known_->surfaces[at_];
  const auto is = [&](const Surface& other) { return other.device == mine.device && other.name == mine.name; };
  const auto found = std::ranges::find_if(beside_->surfaces, is);
  if (found == beside_->surfaces.end()) return;
  const RateCurve picture = rate_curve(*beside_, static_cast<std::size_t>(found - beside_->surfaces.begin()));
  if (picture.x.empty()) return;
  QCPGraph* line = curve_->addGraph();
  line->setData(QVector<double>(picture.x.begin(), picture.x.end()), QVector<double>(picture.y.begin(), picture.y.end()), true);
  line->setPen(QPen(tokens_for(palette()).ring, 2.2, Qt::DashLine));
  line->setName(tr("fitted again"));
  top = std::max(top, *std::ranges::max_element(picture.y));
}

void SurfaceCurve::draw_residuals(QCPAxisRect& rect) {
  const ColorTokens& t = tokens_for(palette());
  QCPAxis* across = rect.axis(QCPAxis::atBottom);
  QCPAxis* up = rect.axis(QCPAxis::atLeft);
  double most = 0.05;
  for (const RatePoint& point : known_->points) {
    if (point.surface == at_) most = std::max(most, std::abs(point.residual));
  }
  QCPGraph* zero = curve_->addGraph(across, up);
  zero->setData({1.0, 1e18}, {0.0, 0.0});
  zero->setPen(QPen(t.muted, 1.0));
  zero->removeFromLegend();
  add_marks(rect, true);
  up->setLabel(tr("residual, %"));
  up->setRange(-most * 125.0, most * 125.0);  // a ring round the outermost is whole
}

}  // namespace cpfit::gui
