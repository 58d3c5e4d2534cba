#include "gui/look/hatch.h"

#include <QColor>
#include <QPainter>
#include <QPen>
#include <cmath>

namespace cpfit::gui {

namespace {

struct Pattern {
  int period;   // pixels between lines along x
  int width;    // pixels of ink
  bool rising;  // "/" rather than "\"
};

Pattern pattern_of(Hatch hatch) {
  switch (hatch) {
    case Hatch::kExposed:
      return {4, 2, true};
    case Hatch::kRecompute:
      return {6, 1, false};
    case Hatch::kRisk:
      return {10, 3, true};
    case Hatch::kIdle:
    case Hatch::kNone:
      break;
  }
  return {0, 0, false};
}

constexpr int kDotPeriod = 4;

int positive_modulo(int value, int period) { return ((value % period) + period) % period; }

}  // namespace

bool inks(Hatch hatch, int x, int y) {
  if (hatch == Hatch::kIdle) return positive_modulo(x, kDotPeriod) == 0 && positive_modulo(y, kDotPeriod) == 0;
  const Pattern pattern = pattern_of(hatch);
  if (pattern.period == 0) return false;
  return positive_modulo(pattern.rising ? x + y : x - y, pattern.period) < pattern.width;
}

void paint_hatch(QPainter& painter, const QRectF& area, Hatch hatch, const QColor& ink) {
  if (hatch == Hatch::kNone || area.isEmpty()) return;
  painter.save();
  painter.setClipRect(area, Qt::IntersectClip);
  painter.setRenderHint(QPainter::Antialiasing, hatch != Hatch::kIdle);
  if (hatch == Hatch::kIdle) {
    painter.setPen(QPen(ink, 1));
    for (double y = std::ceil(area.top() / kDotPeriod) * kDotPeriod; y < area.bottom(); y += kDotPeriod) {
      for (double x = std::ceil(area.left() / kDotPeriod) * kDotPeriod; x < area.right(); x += kDotPeriod)
        painter.drawPoint(QPointF(x, y));
    }
  } else {
    const Pattern pattern = pattern_of(hatch);
    painter.setPen(QPen(ink, pattern.width * 0.7, Qt::SolidLine, Qt::FlatCap));
    // A line x + y = c (rising) or x - y = c crosses the area for c between these.
    const double from = pattern.rising ? area.left() + area.top() : area.left() - area.bottom();
    const double to = pattern.rising ? area.right() + area.bottom() : area.right() - area.top();
    for (double c = std::floor(from / pattern.period) * pattern.period; c <= to; c += pattern.period) {
      const auto at = [&](double y) { return QPointF(pattern.rising ? c - y : c + y, y); };
      painter.drawLine(at(area.top()), at(area.bottom()));
    }
  }
  painter.restore();
}

void paint_edited_frame(QPainter& painter, const QRectF& area, const QColor& ink) {
  painter.save();
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(ink, 1.5, Qt::DashLine));
  painter.drawRect(area);
  painter.restore();
}

}  // namespace cpfit::gui
