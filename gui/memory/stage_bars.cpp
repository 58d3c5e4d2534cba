#include "gui/memory/stage_bars.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>

#include "gui/look/color_tokens.h"
#include "gui/look/figures.h"
#include "gui/look/hatch.h"
#include "gui/memory/memory_tree.h"

namespace cpfit::gui {

namespace {

constexpr double kBarLeft = 58.0, kBarRight = 76.0, kBarTop = 20.0;
constexpr int kMostRows = 10;  // beyond it bars become thin instead of the widget high

}  // namespace

StageBars::StageBars(QWidget* parent) : QWidget(parent) {
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName(tr("Memory per stage"));
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

QSize StageBars::sizeHint() const {
  const int rows = std::clamp(static_cast<int>(bars_.size()), 1, kMostRows);
  return {320, static_cast<int>(kBarTop) + rows * 26 + 6};
}
QSize StageBars::minimumSizeHint() const { return {220, sizeHint().height()}; }

void StageBars::show_stages(std::vector<StageBar> bars, Bytes capacity, double margin_share, std::int32_t chosen) {
  const bool resized = bars.size() != bars_.size();
  bars_ = std::move(bars);
  capacity_ = capacity;
  margin_share_ = margin_share;
  chosen_ = chosen;
  if (resized) updateGeometry();
  const auto worst = std::ranges::max_element(bars_, {}, &StageBar::total);
  if (worst != bars_.end())
    setAccessibleDescription(tr("%1 stages; stage %2 needs most, %3 of %4")
                                 .arg(bars_.size())
                                 .arg(worst->stage)
                                 .arg(bytes_text(worst->total), bytes_text(capacity_)));
  update();
}

void StageBars::choose(std::int32_t stage) {
  if (stage == chosen_ || stage < 0 || stage >= static_cast<std::int32_t>(bars_.size())) return;
  chosen_ = stage;
  update();
  emit stage_chosen(stage);
}

double StageBars::scale() const {
  double most = capacity_.value() * 1.06;
  for (const StageBar& bar : bars_) most = std::max(most, bar.total.value());
  return most > 0.0 ? (width() - kBarLeft - kBarRight) / most : 0.0;
}

QRectF StageBars::bar_area(std::size_t index) const {
  const double slot = (height() - kBarTop - 4.0) / static_cast<double>(std::max<std::size_t>(1, bars_.size()));
  const double gap = slot > 14.0 ? 5.0 : 1.0;
  return {kBarLeft, kBarTop + slot * static_cast<double>(index) + gap / 2, width() - kBarLeft - kBarRight, slot - gap};
}

void StageBars::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const ColorTokens& t = tokens_for(palette());
  painter.fillRect(rect(), t.surface);
  if (bars_.empty()) return;
  const double scale = this->scale();
  const double capacity = kBarLeft + capacity_.value() * scale;
  const double kept = kBarLeft + capacity_.value() * (1.0 - margin_share_) * scale;
  const double bottom = height() - 4.0;
  painter.fillRect(QRectF(capacity, kBarTop, width() - kBarRight - capacity, bottom - kBarTop), mixed(t.surface, t.bad, 0.16));
  painter.fillRect(QRectF(kept, kBarTop, capacity - kept, bottom - kBarTop), mixed(t.surface, t.warn, 0.18));
  const bool thin = bar_area(0).height() < 11.0;
  QFont small = font();
  small.setPointSizeF(small.pointSizeF() * 0.88);
  painter.setFont(small);
  for (std::size_t i = 0; i < bars_.size(); ++i) {
    const StageBar& bar = bars_[i];
    const QRectF area = bar_area(i);
    double x = kBarLeft;
    for (int c = 0; c < kComponentCount; ++c) {
      const double width = bar.components[static_cast<std::size_t>(c)].value() * scale;
      if (width <= 0.0) continue;
      const QRectF part(x, area.top(), width, area.height());
      const auto component = static_cast<Component>(c);
      painter.fillRect(part, color_of(t, component));
      if (component == Component::kRecompute) paint_hatch(painter, part, Hatch::kRecompute, t.surface);
      if (width > 3.0 && !thin) painter.fillRect(QRectF(part.right() - 1, part.top(), 1, part.height()), t.surface);
      const QString label = title_of(component);
      if (!thin && painter.fontMetrics().horizontalAdvance(label) + 8 < width) {
        painter.setPen(contrast(t.surface, color_of(t, component)) > contrast(t.text, color_of(t, component)) ? t.surface
                                                                                                              : t.text);
        painter.drawText(part.adjusted(4, 0, -2, 0), Qt::AlignVCenter | Qt::AlignLeft, label);
      }
      x += width;
    }
    if (bar.stage == chosen_) {
      painter.setPen(QPen(t.accent, hasFocus() ? 2.0 : 1.4));
      painter.setBrush(Qt::NoBrush);
      painter.drawRect(QRectF(kBarLeft - 1, area.top() - 1, x - kBarLeft + 2, area.height() + 2));
    }
    if (thin && i % static_cast<std::size_t>(1 + 14.0 / (area.height() + 1)) != 0) continue;
    painter.setPen(bar.stage == chosen_ ? t.text : t.muted);
    painter.drawText(QRectF(4, area.top(), kBarLeft - 10, area.height()), Qt::AlignVCenter | Qt::AlignLeft,
                     tr("stage %1").arg(bar.stage));
    painter.setPen(bar.fit == Fit::kFits ? t.text : color_of(t, bar.fit));
    painter.drawText(QRectF(width() - kBarRight + 4, area.top(), kBarRight - 8, area.height()), Qt::AlignVCenter | Qt::AlignRight,
                     bytes_text(bar.total));
  }
  painter.setPen(QPen(t.text, 1.5));
  painter.drawLine(QPointF(capacity, kBarTop - 3), QPointF(capacity, bottom));
  painter.setPen(t.muted);
  painter.drawText(QRectF(0, 0, capacity + 40, kBarTop - 3), Qt::AlignBottom | Qt::AlignRight,
                   tr("capacity %1").arg(bytes_text(capacity_)));
}

StageBars::Hit StageBars::hit(const QPointF& at) const {
  for (std::size_t i = 0; i < bars_.size(); ++i) {
    const QRectF area = bar_area(i);
    if (at.y() < area.top() - 3 || at.y() > area.bottom() + 3) continue;
    Hit hit{bars_[i].stage, -1};
    double x = kBarLeft;
    for (int c = 0; c < kComponentCount; ++c) {
      const double width = bars_[i].components[static_cast<std::size_t>(c)].value() * scale();
      if (at.x() >= x && at.x() < x + width) hit.component = c;
      x += width;
    }
    return hit;
  }
  return {};
}

void StageBars::mousePressEvent(QMouseEvent* event) {
  const Hit at = hit(event->position());
  if (at.stage < 0) return;
  choose(at.stage);
  if (at.component >= 0) emit component_clicked(at.stage, at.component);
}

void StageBars::keyPressEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Up || event->key() == Qt::Key_Down)
    choose(std::clamp(chosen_ + (event->key() == Qt::Key_Down ? 1 : -1), 0, static_cast<std::int32_t>(bars_.size()) - 1));
  else
    QWidget::keyPressEvent(event);
}

bool StageBars::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    const Hit at = hit(help->pos());
    if (at.stage >= 0 && at.component >= 0) {
      const Bytes bytes = bars_[static_cast<std::size_t>(at.stage)].components[static_cast<std::size_t>(at.component)];
      QToolTip::showText(
          help->globalPos(),
          tr("Stage %1, %2: %3").arg(at.stage).arg(title_of(static_cast<Component>(at.component)), bytes_text(bytes)), this);
    }
    return true;
  }
  return QWidget::event(event);
}

}  // namespace cpfit::gui
