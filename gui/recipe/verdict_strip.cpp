#include "gui/recipe/verdict_strip.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QPainterPath>
#include <QToolTip>

#include "gui/look/color_tokens.h"
#include "gui/look/figures.h"
#include "gui/look/hatch.h"

namespace cpfit::gui {

namespace {

constexpr double kPad = 14.0;
constexpr double kFirstShare = 0.31;  // of the width: the memory cell with its bar

QString word_of(const Estimate& estimate) {
  if (!estimate.legal()) return QObject::tr("Not legal");
  switch (estimate.candidate->verdict.fit) {
    case Fit::kFits:
      return QObject::tr("Fits");
    case Fit::kAtRisk:
      return QObject::tr("At risk");
    case Fit::kOom:
      break;
  }
  return QObject::tr("Does not fit");
}

QColor color_of_tone(const ColorTokens& tokens, VerdictCell::Tone tone) {
  switch (tone) {
    case VerdictCell::Tone::kGood:
      return tokens.good;
    case VerdictCell::Tone::kWarn:
      return tokens.warn;
    case VerdictCell::Tone::kBad:
      return tokens.bad;
    case VerdictCell::Tone::kPlain:
      break;
  }
  return tokens.text;
}

QFont scaled(QFont font, double factor, bool bold) {
  font.setPointSizeF(font.pointSizeF() * factor);
  font.setBold(bold);
  return font;
}

}  // namespace

VerdictStrip::VerdictStrip(LiveEstimate& live, StudyDocument& document, QWidget* parent)
    : QWidget(parent), live_(live), document_(document) {
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setAccessibleName(tr("Verdict"));
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  connect(&live_, &LiveEstimate::estimate_changed, this, &VerdictStrip::refresh);
  connect(&live_, &LiveEstimate::simulation_changed, this, &VerdictStrip::refresh);
  connect(&live_, &LiveEstimate::levers_changed, this, &VerdictStrip::refresh);
  connect(&live_, &LiveEstimate::what_if_changed, this, &VerdictStrip::refresh);
  connect(&document_, &StudyDocument::baseline_changed, this, &VerdictStrip::refresh);
}

QSize VerdictStrip::sizeHint() const {
  const QFontMetricsF metrics(font());
  return {900, static_cast<int>(metrics.height() * 5.2 + 16)};
}
QSize VerdictStrip::minimumSizeHint() const { return {560, sizeHint().height()}; }

void VerdictStrip::refresh() {
  const Shown shown = shown_candidate(live_);
  cells_ = document_.is_open() ? verdict_cells(live_.now(), shown, document_.baseline()) : std::vector<VerdictCell>{};
  headline_ = document_.is_open()
                  ? verdict_headline(live_.now(), live_.levers_are_current() ? smallest_enough(live_.levers()) : std::nullopt)
                  : QString();
  if (document_.is_open())
    setAccessibleDescription(word_of(live_.now()) + QStringLiteral(". ") + headline_ + QLatin1Char(' ') +
                             verdict_line(live_.now(), shown, document_.baseline()));
  update();
}

std::vector<QRectF> VerdictStrip::places() const {
  std::vector<QRectF> places;
  if (cells_.empty()) return places;
  const double top = 6.0, height = this->height() - 12.0;
  const double first = width() * kFirstShare;
  const double rest = (width() - first) / static_cast<double>(cells_.size() - 1);
  places.emplace_back(0.0, top, first, height);
  for (std::size_t i = 1; i < cells_.size(); ++i)
    places.emplace_back(first + rest * static_cast<double>(i - 1), top, rest, height);
  return places;
}

void VerdictStrip::paint_bar(QPainter& painter, const QRectF& area) const {
  const ColorTokens& t = tokens_for(palette());
  const Candidate& c = *live_.now().candidate;
  const double margin = live_.now().design.scenario->requirements.memory_margin_share;
  const double scale = std::max({c.verdict.capacity.value() * 1.12, c.memory.device.value(), c.verdict.upper.value()});
  const auto x = [&](double bytes) { return area.left() + area.width() * bytes / scale; };
  QPainterPath frame;
  frame.addRoundedRect(area, 3, 3);
  painter.save();
  painter.setClipPath(frame);
  painter.fillRect(area, t.surface);
  const double capacity = x(c.verdict.capacity.value());
  painter.fillRect(QRectF(capacity, area.top(), area.right() - capacity, area.height()), mixed(t.surface, t.bad, 0.22));
  const QRectF kept(x(c.verdict.capacity.value() * (1.0 - margin)), area.top(),
                    capacity - x(c.verdict.capacity.value() * (1.0 - margin)), area.height());
  painter.fillRect(kept, mixed(t.surface, t.warn, 0.25));
  const QColor fill = color_of(t, c.verdict.fit);
  const double used = x(c.memory.device.value()), upper = x(c.verdict.upper.value());
  painter.fillRect(QRectF(area.left(), area.top(), used - area.left(), area.height()), fill);
  paint_hatch(painter, QRectF(used, area.top(), upper - used, area.height()), Hatch::kExposed, fill);
  painter.restore();
  painter.setPen(QPen(t.text, 1.5));
  painter.drawLine(QPointF(capacity, area.top() - 3), QPointF(capacity, area.bottom() + 3));
  painter.setPen(QPen(t.line, 1));
  painter.setBrush(Qt::NoBrush);
  painter.drawPath(frame);
}

void VerdictStrip::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const ColorTokens& t = tokens_for(palette());
  painter.fillRect(rect(), t.surface);
  painter.setPen(t.line);
  painter.drawLine(QPointF(0, height() - 0.5), QPointF(width(), height() - 0.5));
  if (!document_.is_open()) return;
  const QFont big = scaled(font(), 1.45, true), small = scaled(font(), 0.88, false);
  const QFontMetricsF big_metrics(big), small_metrics(small);
  const QColor tone = live_.now().legal() ? color_of(t, live_.now().candidate->verdict.fit) : t.bad;
  // The head sentence runs along the bottom; the cells stand above it.
  const double line = small_metrics.height() + 4;
  const QRectF sentence(kPad, height() - line - 7, width() - 2 * kPad, line);
  painter.setFont(scaled(font(), 0.95, true));
  const QString word = word_of(live_.now());
  painter.setPen(tone);
  painter.drawText(sentence, Qt::AlignLeft | Qt::AlignVCenter, word);
  const double word_width = QFontMetricsF(painter.font()).horizontalAdvance(word) + 8;
  painter.setFont(scaled(font(), 0.95, false));
  painter.setPen(t.text);
  const QRectF rest = sentence.adjusted(word_width, 0, 0, 0);
  painter.drawText(rest, Qt::AlignLeft | Qt::AlignVCenter,
                   QFontMetricsF(painter.font()).elidedText(headline_, Qt::ElideRight, rest.width()));
  const std::vector<QRectF> places = this->places();
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    const VerdictCell& cell = cells_[i];
    QRectF area = places[i].adjusted(kPad, 2, -8, -line - 6);
    if (i > 0) {
      painter.setPen(t.grid);
      painter.drawLine(QPointF(places[i].left(), area.top()), QPointF(places[i].left(), area.bottom()));
    }
    if (hasFocus() && static_cast<int>(i) == focused_) {
      painter.setPen(QPen(t.accent, 2));
      painter.setBrush(Qt::NoBrush);
      painter.drawRoundedRect(places[i].adjusted(3, 0, -3, -line - 4), 4, 4);
    }
    painter.setFont(small);
    painter.setPen(t.muted);
    painter.drawText(QRectF(area.left(), area.top(), area.width(), small_metrics.height()), Qt::AlignLeft,
                     cell.mark.isEmpty() ? cell.caption : cell.caption + QStringLiteral("  ") + cell.mark);
    painter.setFont(big);
    painter.setPen(color_of_tone(t, cell.tone));
    const double value_top = area.top() + small_metrics.height();
    painter.drawText(QRectF(area.left(), value_top, area.width(), big_metrics.height()), Qt::AlignLeft | Qt::AlignVCenter,
                     big_metrics.elidedText(cell.value, Qt::ElideRight, area.width()));
    const double note_top = value_top + big_metrics.height();
    if (cell.id == QLatin1String("memory")) {
      const double bar_left = area.left() + big_metrics.horizontalAdvance(cell.value) + 12;
      if (bar_left + 60 < area.right())
        paint_bar(painter, QRectF(bar_left, value_top + big_metrics.height() * 0.22, area.right() - bar_left,
                                  big_metrics.height() * 0.56));
    }
    painter.setFont(small);
    double left = area.left();
    if (!cell.delta.isEmpty()) {
      painter.setPen(cell.better ? t.good : t.bad);
      const QString delta = (cell.better ? QStringLiteral("▾ ") : QStringLiteral("▴ ")) + cell.delta;
      painter.drawText(QRectF(left, note_top, area.width(), small_metrics.height()), Qt::AlignLeft, delta);
      left += small_metrics.horizontalAdvance(delta) + 8;
    }
    painter.setPen(t.muted);
    painter.drawText(QRectF(left, note_top, area.right() - left, small_metrics.height()), Qt::AlignLeft,
                     small_metrics.elidedText(cell.note, Qt::ElideRight, area.right() - left));
  }
}

void VerdictStrip::mousePressEvent(QMouseEvent* event) {
  const std::vector<QRectF> places = this->places();
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (!places[i].contains(event->position())) continue;
    focused_ = static_cast<int>(i);
    emit reveal(cells_[i].id);
  }
  update();
}

void VerdictStrip::keyPressEvent(QKeyEvent* event) {
  const int count = static_cast<int>(cells_.size());
  if (count > 0 && (event->key() == Qt::Key_Left || event->key() == Qt::Key_Right)) {
    focused_ = std::clamp(focused_ + (event->key() == Qt::Key_Right ? 1 : -1), 0, count - 1);
    const VerdictCell& cell = cells_[static_cast<std::size_t>(focused_)];
    setAccessibleDescription(cell.caption + QStringLiteral(": ") + cell.value + QStringLiteral(", ") + cell.note +
                             (cell.source.isEmpty() ? QString() : QStringLiteral(", ") + cell.source));
    update();
    return;
  }
  if (count > 0 && (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter)) {
    emit reveal(cells_[static_cast<std::size_t>(focused_)].id);
    return;
  }
  QWidget::keyPressEvent(event);
}

void VerdictStrip::focusInEvent(QFocusEvent* event) {
  QWidget::focusInEvent(event);
  update();
}

bool VerdictStrip::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    const std::vector<QRectF> places = this->places();
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (!places[i].contains(help->pos())) continue;
      QToolTip::showText(
          help->globalPos(),
          QStringLiteral("<p>%1%2</p>")
              .arg(cells_[i].mark.isEmpty() ? QString() : QStringLiteral("%1 %2. ").arg(cells_[i].mark, cells_[i].source),
                   (cells_[i].tip.isEmpty() ? cells_[i].note : cells_[i].tip).toHtmlEscaped()),
          this);
      return true;
    }
    QToolTip::showText(help->globalPos(), QStringLiteral("<p>%1</p>").arg(headline_.toHtmlEscaped()), this);
    return true;
  }
  return QWidget::event(event);
}

}  // namespace cpfit::gui
