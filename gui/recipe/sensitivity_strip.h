// A slider that shows what it would do: a column per value, height its step time, filled where it fits, hatched at risk, outlined
// where it does not fit, crossed where it is not legal, ringed where it stands. Dragging and keys go over legal values only.
#pragma once

#include <QWidget>
#include <string>
#include <vector>

#include "gui/recipe/strip_layout.h"

namespace cpfit::gui {

class SensitivityStrip : public QWidget {
  Q_OBJECT
 public:
  explicit SensitivityStrip(QString label, QWidget* parent = nullptr);
  void set_variations(std::vector<Variation> variations);
  [[nodiscard]] const std::vector<Variation>& variations() const { return variations_; }
  [[nodiscard]] QSize sizeHint() const override { return {130, 26}; }
  [[nodiscard]] QSize minimumSizeHint() const override { return {44, 24}; }

 signals:
  /// `gesture` is the same for all moves of one drag, and new for each key.
  void picked(const QString& value, int gesture);
  /// PageUp, PageDown and arrows on a strip that cannot move say why.
  void refused(const QString& why);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void focusInEvent(QFocusEvent* event) override;
  void focusOutEvent(QFocusEvent* event) override;
  bool event(QEvent* event) override;

 private:
  void aim(double x);
  void pick(std::size_t column);
  [[nodiscard]] std::vector<StripColumn> columns() const;
  [[nodiscard]] std::optional<Variation> current() const;
  void tell();
  QString label_;
  std::vector<Variation> variations_;
  int gesture_ = 0;
};

}  // namespace cpfit::gui
