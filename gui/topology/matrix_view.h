// The traffic matrix as an image: rows send, columns receive; dragging brushes a block of pairs. Arrows move the brushed cell,
// Shift with an arrow widens it.
#pragma once

#include <QImage>
#include <QWidget>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "gui/topology/traffic_matrix.h"

class QPainter;

namespace cpfit::gui {

class MatrixView : public QWidget {
  Q_OBJECT

 public:
  explicit MatrixView(QWidget* parent = nullptr);
  void setMatrix(TrafficMatrix matrix, const QString& what);
  void setBrush(std::optional<PairBlock> block);
  [[nodiscard]] const TrafficMatrix& matrix() const { return matrix_; }
  [[nodiscard]] const std::optional<PairBlock>& brush() const { return brush_; }
  [[nodiscard]] QString text() const;  // of the brushed block, else of the whole
  [[nodiscard]] QRectF plot() const;
  [[nodiscard]] QSize sizeHint() const override { return {420, 420}; }
  [[nodiscard]] QSize minimumSizeHint() const override { return {160, 160}; }

 signals:
  void brushed();

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void changeEvent(QEvent* event) override;
  bool event(QEvent* event) override;

 private:
  [[nodiscard]] std::optional<std::pair<std::int64_t, std::int64_t>> cellAt(const QPointF& place) const;
  void list(QPainter& painter, const QRectF& room) const;
  [[nodiscard]] QString end(std::int64_t first, std::int64_t last) const;

  TrafficMatrix matrix_;
  QString what_;
  std::optional<PairBlock> brush_;
  std::pair<std::int64_t, std::int64_t> pressed_{0, 0};
  std::vector<std::pair<std::int64_t, std::int64_t>> largest_;  // pairs, most bytes first
  mutable QImage image_;
};

}  // namespace cpfit::gui
