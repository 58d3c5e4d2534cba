#include "gui/recipe/lock_button.h"

#include <QPainter>
#include <QPainterPath>
#include <QStyle>
#include <QStyleOptionToolButton>

#include "gui/look/color_tokens.h"

namespace cpfit::gui {

LockButton::LockButton(const QString& label, QWidget* parent) : QToolButton(parent), label_(label) {
  setCheckable(true);
  setAutoRaise(true);
  setFocusPolicy(Qt::StrongFocus);
  setFixedSize(sizeHint());
  set_locked(false);
}

QSize LockButton::sizeHint() const { return {kWidth, kHeight}; }

void LockButton::set_locked(bool locked) {
  setChecked(locked);
  setAccessibleName(locked ? tr("%1 is locked").arg(label_) : tr("Lock %1").arg(label_));
  setToolTip(locked ? tr("%1 keeps its value whatever is searched or proposed; press to unlock").arg(label_)
                    : tr("Lock %1: no search and no proposal changes it").arg(label_));
  update();
}

void LockButton::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const ColorTokens& t = tokens_for(palette());
  const bool closed = isChecked();
  if (underMouse() && isEnabled()) painter.fillRect(rect().adjusted(2, 2, -2, -2), t.raised);
  const QColor ink = closed ? t.accent : mixed(t.window, t.muted, underMouse() || hasFocus() ? 1.0 : 0.6);
  const QPointF middle = QRectF(rect()).center();
  const QRectF body(middle.x() - 4.5, middle.y() - 0.5, 9.0, 7.0);
  // The bow stands on the left leg alone while the lock is open.
  QPainterPath bow;
  const qreal lift = closed ? 0.0 : 1.2;
  const QRectF arc(middle.x() - 3.0, middle.y() - 5.5 - lift, 6.0, 6.0);
  bow.moveTo(arc.left(), body.top());
  bow.lineTo(arc.left(), arc.center().y());
  bow.arcTo(arc, 180.0, -180.0);
  if (closed) bow.lineTo(arc.right(), body.top());
  painter.setPen(QPen(ink, 1.5, Qt::SolidLine, Qt::RoundCap));
  painter.setBrush(Qt::NoBrush);
  painter.drawPath(bow);
  painter.setBrush(closed ? QBrush(ink) : Qt::NoBrush);
  painter.drawRoundedRect(body, 1.5, 1.5);
  if (!hasFocus()) return;
  QStyleOptionFocusRect focus;
  focus.initFrom(this);
  focus.rect = rect().adjusted(1, 1, -1, -1);
  style()->drawPrimitive(QStyle::PE_FrameFocusRect, &focus, &painter, this);
}

}  // namespace cpfit::gui
