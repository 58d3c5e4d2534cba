// A padlock: closed and filled while the row's value is held, open and pale else. Painted, so that no font decides how it looks.
#pragma once

#include <QToolButton>

namespace cpfit::gui {

class LockButton : public QToolButton {
  Q_OBJECT
 public:
  static constexpr int kWidth = 22, kHeight = 24;
  /// `label`: of the row.
  explicit LockButton(const QString& label, QWidget* parent = nullptr);
  void set_locked(bool locked);
  [[nodiscard]] QSize sizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  QString label_;
};

}  // namespace cpfit::gui
