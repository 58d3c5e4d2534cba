#include "gui/topology/matrix_view.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "gui/look/color_tokens.h"
#include "gui/look/figures.h"

namespace cpfit::gui {

namespace {
constexpr std::size_t kListed = 40;
constexpr double kLeft = 54, kTop = 46, kRight = 12, kBottom = 12;
}  // namespace

MatrixView::MatrixView(QWidget* parent) : QWidget(parent) {
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setAccessibleName(tr("Traffic matrix"));
}

void MatrixView::setMatrix(TrafficMatrix matrix, const QString& what) {
  if (matrix.size != matrix_.size || matrix.by_node != matrix_.by_node) brush_.reset();
  matrix_ = std::move(matrix);
  what_ = what;
  image_ = {};
  largest_.clear();
  for (std::int64_t from = 0; from < matrix_.size; ++from) {
    for (std::int64_t to = 0; to < matrix_.size; ++to) {
      if (matrix_.at(from, to) > 0) largest_.emplace_back(from, to);
    }
  }
  const auto more = [this](const auto& a, const auto& b) {
    return matrix_.at(a.first, a.second) > matrix_.at(b.first, b.second);
  };
  const std::size_t shown = std::min<std::size_t>(largest_.size(), kListed);
  std::partial_sort(largest_.begin(), largest_.begin() + static_cast<std::ptrdiff_t>(shown), largest_.end(), more);
  largest_.resize(shown);
  setAccessibleDescription(text());
  update();
}

void MatrixView::setBrush(std::optional<PairBlock> block) {
  if (block) {
    const auto inside = [&](std::int64_t v) {
      return std::clamp<std::int64_t>(v, 0, std::max<std::int64_t>(0, matrix_.size - 1));
    };
    block =
        PairBlock{inside(std::min(block->from_first, block->from_last)), inside(std::max(block->from_first, block->from_last)),
                  inside(std::min(block->to_first, block->to_last)), inside(std::max(block->to_first, block->to_last))};
  }
  if (block == brush_) return;
  brush_ = block;
  setAccessibleDescription(text());
  update();
  emit brushed();
}

QString MatrixView::end(std::int64_t first, std::int64_t last) const {
  const QString noun = matrix_.by_node ? (first == last ? tr("node") : tr("nodes")) : (first == last ? tr("rank") : tr("ranks"));
  const QString range = first == last
                            ? QString::number(static_cast<qlonglong>(first))
                            : QStringLiteral("%1–%2").arg(static_cast<qlonglong>(first)).arg(static_cast<qlonglong>(last));
  return noun + QLatin1Char(' ') + range;
}

QString MatrixView::text() const {
  if (matrix_.size == 0) return tr("Nothing is sent.");
  const PairBlock block = brush_.value_or(PairBlock{0, matrix_.size - 1, 0, matrix_.size - 1});
  const BlockSums sums = block_sums(matrix_, block);
  return tr("%1 to %2: %3 in a step, %4 pairs send")
      .arg(end(block.from_first, block.from_last), end(block.to_first, block.to_last), bytes_text(Bytes(sums.bytes)),
           count_text(sums.pairs));
}

QRectF MatrixView::plot() const {
  const double side = std::max(10.0, std::min(width() - kLeft - kRight, height() - kTop - kBottom));
  return {kLeft, kTop, side, side};
}

std::optional<std::pair<std::int64_t, std::int64_t>> MatrixView::cellAt(const QPointF& place) const {
  const QRectF area = plot();
  if (matrix_.size == 0 || !area.contains(place)) return std::nullopt;
  const double size = static_cast<double>(matrix_.size);
  const auto cell = [&](double share) { return std::min(matrix_.size - 1, static_cast<std::int64_t>(share * size)); };
  return std::pair(cell((place.y() - area.top()) / area.height()), cell((place.x() - area.left()) / area.width()));
}

void MatrixView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const ColorTokens& tokens = tokens_for(palette());
  painter.fillRect(rect(), tokens.surface);
  painter.setPen(tokens.text);
  painter.drawText(QRectF(8, 4, width() - 16, 18), Qt::AlignLeft | Qt::AlignVCenter, what_);
  if (matrix_.size == 0) {
    painter.setPen(tokens.muted);
    painter.drawText(rect().adjusted(24, 24, -24, -24), Qt::AlignCenter | Qt::TextWordWrap,
                     tr("No recipe sends anything yet: choose one with more than one rank."));
    return;
  }
  const QRectF area = plot();
  const int size = static_cast<int>(matrix_.size);
  if (image_.isNull()) {
    image_ = QImage(size, size, QImage::Format_RGB32);
    for (int from = 0; from < size; ++from) {
      auto* row = reinterpret_cast<QRgb*>(image_.scanLine(from));
      for (int to = 0; to < size; ++to) {
        const double shade = matrix_shade(matrix_, from, to);
        row[to] = (shade > 0 ? mixed(tokens.surface, tokens.attention, shade) : from == to ? tokens.grid : tokens.window).rgb();
      }
    }
  }
  painter.setRenderHint(QPainter::SmoothPixmapTransform, false);
  painter.drawImage(area, image_);
  QFont small = font();
  small.setPointSizeF(std::max(6.5, small.pointSizeF() * 0.88));
  painter.setFont(small);
  const double cell = area.width() / size;
  // Node borders, where a node is more than a cell.
  painter.setPen(tokens.line);
  painter.drawRect(area);
  const int every = std::max(1, static_cast<int>(std::ceil(28 / cell)));
  int step = 1;
  while (step < every) step *= 2;
  painter.setPen(tokens.muted);
  for (int i = 0; i < size; i += step) {
    painter.drawText(QRectF(area.left() + i * cell, area.top() - 18, std::max(cell, 28.0), 16), Qt::AlignLeft | Qt::AlignVCenter,
                     QString::number(i));
    painter.drawText(QRectF(2, area.top() + i * cell, kLeft - 8, std::min(std::max(cell, 14.0), 16.0)),
                     Qt::AlignRight | Qt::AlignVCenter, QString::number(i));
  }
  painter.save();
  painter.translate(12, area.center().y());
  painter.rotate(-90);
  painter.drawText(QRectF(-60, -8, 120, 16), Qt::AlignCenter, tr("sends"));
  painter.restore();
  painter.drawText(QRectF(area.right() - 120, area.top() - 34, 120, 16), Qt::AlignRight | Qt::AlignVCenter, tr("receives"));
  list(painter, QRectF(area.right() + 28, area.top(), width() - area.right() - 40, area.height()));
  if (brush_) {
    const QRectF block(area.left() + static_cast<double>(brush_->to_first) * cell,
                       area.top() + static_cast<double>(brush_->from_first) * cell,
                       static_cast<double>(brush_->to_last - brush_->to_first + 1) * cell,
                       static_cast<double>(brush_->from_last - brush_->from_first + 1) * cell);
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(tokens.surface, 4));
    painter.drawRect(block);
    painter.setPen(QPen(tokens.exposed, 2));
    painter.drawRect(block);
  }
  if (hasFocus()) {
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(tokens.accent, 2));
    painter.drawRect(QRectF(rect()).adjusted(1, 1, -1, -1));
  }
}

/// The largest pairs in words, where there is room beside the matrix.
void MatrixView::list(QPainter& painter, const QRectF& room) const {
  if (room.width() < 190 || largest_.empty()) return;
  const ColorTokens& tokens = tokens_for(palette());
  const double line = painter.fontMetrics().height() + 5;
  const double width = std::min(room.width(), 340.0);
  painter.setPen(tokens.muted);
  painter.drawText(QRectF(room.left(), room.top(), width, line), Qt::AlignLeft | Qt::AlignVCenter, tr("largest"));
  double y = room.top() + line;
  for (const auto& [from, to] : largest_) {
    if (y + line > room.bottom()) break;
    const QRectF row(room.left(), y, width, line);
    const double share = matrix_.at(from, to) / matrix_.most;
    painter.fillRect(QRectF(row.left(), row.top() + 1, row.width() * share, line - 2),
                     mixed(tokens.surface, tokens.attention, 0.16));
    painter.setPen(tokens.text);
    painter.drawText(row.adjusted(6, 0, -6, 0), Qt::AlignLeft | Qt::AlignVCenter,
                     tr("%1 → %2").arg(static_cast<qlonglong>(from)).arg(static_cast<qlonglong>(to)));
    painter.drawText(row.adjusted(6, 0, -6, 0), Qt::AlignRight | Qt::AlignVCenter, bytes_text(Bytes(matrix_.at(from, to))));
    y += line;
  }
}

void MatrixView::mousePressEvent(QMouseEvent* event) {
  const auto cell = cellAt(event->position());
  if (!cell) return setBrush({});
  pressed_ = *cell;
  setBrush(PairBlock{cell->first, cell->first, cell->second, cell->second});
}

void MatrixView::mouseMoveEvent(QMouseEvent* event) {
  if (!event->buttons().testFlag(Qt::LeftButton)) return;
  if (const auto cell = cellAt(event->position()))
    setBrush(PairBlock{pressed_.first, cell->first, pressed_.second, cell->second});
}

void MatrixView::keyPressEvent(QKeyEvent* event) {
  const int down = event->key() == Qt::Key_Down ? 1 : event->key() == Qt::Key_Up ? -1 : 0;
  const int right = event->key() == Qt::Key_Right ? 1 : event->key() == Qt::Key_Left ? -1 : 0;
  if (event->key() == Qt::Key_Escape && brush_) return setBrush({});
  if ((down == 0 && right == 0) || matrix_.size == 0) return QWidget::keyPressEvent(event);
  PairBlock block = brush_.value_or(PairBlock{0, 0, 0, 0});
  if (brush_ && event->modifiers().testFlag(Qt::ShiftModifier)) {
    block.from_last = std::max(block.from_first, block.from_last + down);
    block.to_last = std::max(block.to_first, block.to_last + right);
  } else if (brush_) {
    block = {block.from_first + down, block.from_last + down, block.to_first + right, block.to_last + right};
    if (block.from_first < 0 || block.to_first < 0 || block.from_last >= matrix_.size || block.to_last >= matrix_.size) return;
  }
  setBrush(block);
}

void MatrixView::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange) image_ = {};
  QWidget::changeEvent(event);
}

bool MatrixView::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    if (const auto cell = cellAt(help->pos())) {
      QToolTip::showText(help->globalPos(),
                         tr("%1 to %2: %3 in a step")
                             .arg(end(cell->first, cell->first), end(cell->second, cell->second),
                                  bytes_text(Bytes(matrix_.at(cell->first, cell->second)))),
                         this);
    } else {
      QToolTip::hideText();
    }
    return true;
  }
  return QWidget::event(event);
}

}  // namespace cpfit::gui
