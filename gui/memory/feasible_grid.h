// The picture of feasible degrees: a cell per CP degree and sequence length, coloured and hatched by what forbids it; the memory
// floor and the overlap ceiling as lines; the current recipe ringed. Arrow keys walk, Enter or a click takes the cell.
#pragma once

#include <QWidget>
#include <memory>

#include "gui/study/live_estimate.h"

namespace cpfit::gui {

class FeasibleGrid : public QWidget {
  Q_OBJECT
 public:
  explicit FeasibleGrid(QWidget* parent = nullptr);
  void show_sweep(std::shared_ptr<const Sweep> sweep, const Design& design);
  [[nodiscard]] QSize minimumSizeHint() const override { return {360, 220}; }
  [[nodiscard]] QSize sizeHint() const override { return {640, 360}; }
  void paint(QPainter& painter) const;

 signals:
  void taken(std::int32_t cp, std::int64_t sequence);
  void pointed(const QString& sentence);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool event(QEvent* event) override;

 private:
  struct Cell {
    int column = -1, row = -1;  // length, degree
  };
  [[nodiscard]] QRectF area() const;
  [[nodiscard]] QRectF place(int column, int row) const;
  [[nodiscard]] Cell cell_at(const QPointF& at) const;
  [[nodiscard]] QString text_at(const Cell& cell) const;
  void walk(int columns, int rows);
  void paint_bounds(QPainter& painter) const;
  void paint_legend(QPainter& painter) const;
  std::shared_ptr<const Sweep> sweep_;
  Design design_;
  Cell focus_;
};

}  // namespace cpfit::gui
