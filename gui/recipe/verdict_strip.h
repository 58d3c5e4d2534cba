// The verdict strip: fits or not as a bar with its red zone, step, ring, MFU, what limits, against the baseline.
#pragma once

#include <QWidget>
#include <vector>

#include "gui/recipe/verdict_text.h"

namespace cpfit::gui {

class VerdictStrip : public QWidget {
  Q_OBJECT
 public:
  VerdictStrip(LiveEstimate& live, StudyDocument& document, QWidget* parent = nullptr);
  [[nodiscard]] QSize sizeHint() const override;
  [[nodiscard]] QSize minimumSizeHint() const override;
  [[nodiscard]] const std::vector<VerdictCell>& cells() const { return cells_; }

 signals:
  /// A number was clicked: show its place.
  void reveal(const QString& cell);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  bool event(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void focusInEvent(QFocusEvent* event) override;

 private:
  void refresh();
  [[nodiscard]] std::vector<QRectF> places() const;
  void paint_bar(QPainter& painter, const QRectF& area) const;
  LiveEstimate& live_;
  StudyDocument& document_;
  std::vector<VerdictCell> cells_;
  QString headline_;
  int focused_ = 0;
};

}  // namespace cpfit::gui
