#include "gui/calibration/surface_curve.h"

#include <qcustomplot.h>

#include <QEvent>
#include <QLabel>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

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
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(4);
  layout->addWidget(headline_);
  layout->addWidget(curve_, 1);
}

QString SurfaceCurve::headline() const { return headline_->text(); }

void SurfaceCurve::show_surface(std::shared_ptr<const KnownCalibration> known, std::size_t surface) {
  known_ = std::move(known);
  at_ = surface;
  draw();
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
  QVector<double> px, py;
  for (const RatePoint& point : known_->points) {
    if (point.surface != at_) continue;
    px.append(point.x);
    py.append(point.rate);
    top = std::max(top, point.rate);
    left = std::min(left, point.x);
    right = std::max(right, point.x);
  }
  if (!px.isEmpty()) {
    QCPGraph* points = curve_->addGraph();
    points->setData(px, py);
    points->setLineStyle(QCPGraph::lsNone);
    points->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssCircle, QPen(t.exposed, 1.3), Qt::NoBrush, 6));
    points->setName(tr("measured, at their own shapes"));
  }
  curve_->xAxis->setLabel(px.isEmpty() ? picture.x_label : QString());
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
  if (!px.isEmpty()) {
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

void SurfaceCurve::draw_residuals(QCPAxisRect& rect) {
  const ColorTokens& t = tokens_for(palette());
  QCPAxis* across = rect.axis(QCPAxis::atBottom);
  QCPAxis* up = rect.axis(QCPAxis::atLeft);
  QVector<double> x, y;
  double most = 0.05;
  for (const RatePoint& point : known_->points) {
    if (point.surface != at_) continue;
    x.append(point.x);
    y.append(point.residual * 100.0);
    most = std::max(most, std::abs(point.residual));
  }
  QCPGraph* zero = curve_->addGraph(across, up);
  zero->setData({1.0, 1e18}, {0.0, 0.0});
  zero->setPen(QPen(t.muted, 1.0));
  zero->removeFromLegend();
  QCPGraph* residuals = curve_->addGraph(across, up);
  residuals->setData(x, y);
  residuals->setLineStyle(QCPGraph::lsNone);
  residuals->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssCircle, QPen(t.exposed, 1.3), Qt::NoBrush, 6));
  residuals->removeFromLegend();
  up->setLabel(tr("residual, %"));
  up->setRange(-most * 110.0, most * 110.0);
}

}  // namespace cpfit::gui
