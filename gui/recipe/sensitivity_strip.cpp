#include "gui/recipe/sensitivity_strip.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <atomic>

#include "gui/look/color_tokens.h"
#include "gui/look/figures.h"
#include "gui/look/hatch.h"

namespace cpfit::gui {

SensitivityStrip::SensitivityStrip(QString label, QWidget* parent) : QWidget(parent), label_(std::move(label)) {
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName(label_ + tr(": values nearby"));
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

std::optional<Variation> SensitivityStrip::current() const {
  const auto found = std::ranges::find_if(variations_, &Variation::current);
  return found == variations_.end() ? std::nullopt : std::optional(*found);
}

void SensitivityStrip::set_variations(std::vector<Variation> variations) {
  variations_ = std::move(variations);
  tell();
  update();
}

void SensitivityStrip::tell() {
  const std::optional<Variation> now = current();
  setAccessibleDescription(now ? variation_text(label_, *now, std::nullopt) : QString());
}

std::vector<StripColumn> SensitivityStrip::columns() const {
  return strip_columns(QRectF(rect()).adjusted(2, 3, -2, -3), variations_);
}

void SensitivityStrip::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const ColorTokens& t = tokens_for(palette());
  const std::vector<StripColumn> columns = this->columns();
  const QColor plain = mixed(t.surface, t.text, isEnabled() ? 0.42 : 0.22);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const Variation& v = variations_[i];
    const QRectF bar = columns[i].bar;
    const QColor ink = v.current && isEnabled() ? t.accent : plain;
    if (!v.legal) {
      painter.setPen(QPen(v.current ? t.bad : mixed(t.surface, t.text, 0.3), 1.3));
      const QRectF cross(bar.center().x() - 2.5, bar.bottom() - 6.5, 5, 5);
      painter.drawLine(cross.topLeft(), cross.bottomRight());
      painter.drawLine(cross.topRight(), cross.bottomLeft());
    } else if (v.fit == Fit::kFits) {
      painter.fillRect(bar, ink);
    } else {
      if (v.fit == Fit::kAtRisk) paint_hatch(painter, bar, Hatch::kExposed, ink);
      painter.setPen(QPen(ink, 1));
      painter.setBrush(Qt::NoBrush);
      painter.drawRect(bar.adjusted(0.5, 0.5, -0.5, -0.5));
    }
    if (v.current) {
      painter.setPen(QPen(hasFocus() ? t.accent : mixed(t.surface, t.accent, 0.7), hasFocus() ? 2.0 : 1.2));
      painter.setBrush(Qt::NoBrush);
      painter.drawRoundedRect(columns[i].place.adjusted(0, -2, 0, 2), 3, 3);
    }
  }
}

void SensitivityStrip::pick(std::size_t column) {
  if (column < variations_.size() && !variations_[column].current) emit picked(text_of(variations_[column].value), gesture_);
}

void SensitivityStrip::aim(double x) {
  const std::optional<std::size_t> aimed = column_at(columns(), x);
  if (!aimed) return;
  if (const std::optional<std::size_t> legal = nearest_legal_column(variations_, *aimed)) pick(*legal);
}

namespace {

/// Numbers of gestures, over all strips of the program.
int next_gesture() {
  static std::atomic<int> last{0};
  return ++last;
}

}  // namespace

void SensitivityStrip::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return;
  gesture_ = next_gesture();
  aim(event->position().x());
}

void SensitivityStrip::mouseMoveEvent(QMouseEvent* event) {
  if ((event->buttons() & Qt::LeftButton) != 0) aim(event->position().x());
}

void SensitivityStrip::keyPressEvent(QKeyEvent* event) {
  const int all = static_cast<int>(variations_.size());
  int steps = 0;
  switch (event->key()) {
    case Qt::Key_Up:
    case Qt::Key_Right:
      steps = 1;
      break;
    case Qt::Key_Down:
    case Qt::Key_Left:
      steps = -1;
      break;
    case Qt::Key_PageUp:
      steps = 3;
      break;
    case Qt::Key_PageDown:
      steps = -3;
      break;
    case Qt::Key_Home:
      steps = -all;
      break;
    case Qt::Key_End:
      steps = all;
      break;
    default:
      QWidget::keyPressEvent(event);
      return;
  }
  gesture_ = next_gesture();
  if (const std::optional<std::size_t> column = legal_step(variations_, steps))
    pick(*column);
  else
    emit refused(tr("%1 has no other legal value in that direction.").arg(label_));
}

void SensitivityStrip::focusInEvent(QFocusEvent* event) {
  QWidget::focusInEvent(event);
  update();
}
void SensitivityStrip::focusOutEvent(QFocusEvent* event) {
  QWidget::focusOutEvent(event);
  update();
}

bool SensitivityStrip::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    if (const std::optional<std::size_t> at = column_at(columns(), help->pos().x()))
      QToolTip::showText(help->globalPos(),
                         QStringLiteral("<p>%1</p>").arg(variation_text(label_, variations_[*at], current()).toHtmlEscaped()),
                         this);
    return true;
  }
  return QWidget::event(event);
}

}  // namespace cpfit::gui
