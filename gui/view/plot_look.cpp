#include "gui/view/plot_look.h"

#include <qcustomplot.h>

#include <algorithm>
#include <cmath>

#include <QPicture>

#include "gui/look/color_tokens.h"
#include "gui/look/figures.h"
#include "gui/look/ticks.h"

namespace cpfit::gui {

void dress(QCustomPlot& plot) {
  const ColorTokens& t = tokens_for(plot.palette());
  plot.setBackground(t.surface);
  QFont small = plot.font();
  small.setPointSizeF(small.pointSizeF() * 0.9);
  for (QCPAxisRect* rect : plot.axisRects()) {
    for (QCPAxis* axis : rect->axes()) {
      axis->setBasePen(QPen(t.line));
      axis->setTickPen(QPen(t.line));
      axis->setSubTickPen(Qt::NoPen);
      axis->setTickLabelColor(t.muted);
      axis->setLabelColor(t.text);
      axis->setTickLabelFont(small);
      axis->setLabelFont(plot.font());
      axis->grid()->setPen(QPen(t.grid));
      axis->grid()->setZeroLinePen(Qt::NoPen);
      axis->grid()->setSubGridVisible(false);
    }
  }
  if (plot.legend != nullptr) {
    plot.legend->setBrush(mixed(t.surface, t.window, 0.5));
    plot.legend->setBorderPen(QPen(t.line));
    plot.legend->setTextColor(t.text);
    plot.legend->setFont(small);
    plot.legend->setIconSize(14, 10);
    plot.legend->setRowSpacing(0);
  }
}

void show_tokens(QCPAxis& axis, std::int64_t shortest, std::int64_t longest) {
  axis.setScaleType(QCPAxis::stLogarithmic);
  const QSharedPointer<QCPAxisTickerText> ticker(new QCPAxisTickerText);
  for (const std::int64_t tokens : power_ticks(shortest, longest))
    ticker->addTick(static_cast<double>(tokens), tokens_text(tokens));
  axis.setTicker(ticker);
  axis.setRange(static_cast<double>(shortest), static_cast<double>(longest));
}

void show_span(QCPAxis& axis, double low, double high, double rim) {
  constexpr double kDecade = 10.0;
  if (low <= 0.0 || high < kDecade * low) {
    const double beside = std::max(1e-9, high - low) * rim;
    axis.setScaleType(QCPAxis::stLinear);
    axis.setTicker(QSharedPointer<QCPAxisTicker>(new QCPAxisTicker));
    axis.setRange(std::max(0.0, low - beside), high + beside);
    return;
  }
  const double beside = std::pow(high / low, rim);
  const QSharedPointer<QCPAxisTickerText> ticker(new QCPAxisTickerText);
  for (double decade = std::pow(kDecade, std::floor(std::log10(low))); decade <= high * beside; decade *= kDecade) {
    for (const double step : {1.0, 2.0, 5.0}) ticker->addTick(decade * step, QString::number(decade * step, 'g', 4));
  }
  axis.setScaleType(QCPAxis::stLogarithmic);
  axis.setTicker(ticker);
  axis.setRange(low / beside, high * beside);
}

void paint_plot(QCustomPlot& plot, QPainter& painter) {
  // QCPPainter is a painter of its own, and a device has one at a time: the vectors travel in a picture.
  QPicture picture;
  {
    QCPPainter vectors(&picture);
    vectors.setMode(QCPPainter::pmVectorized);
    vectors.setMode(QCPPainter::pmNoCaching);
    plot.toPainter(&vectors, plot.width(), plot.height());
  }
  painter.drawPicture(plot.pos(), picture);
}

}  // namespace cpfit::gui
