// The first columns of a table stay where they are while the others scroll: a second view of the same model over its left edge.
#pragma once

#include <QObject>

class QTableView;

namespace cpfit::gui {

class FrozenColumns : public QObject {
  Q_OBJECT
 public:
  /// `table` has its model already, and its columns keep their order: the first `count` can no longer be moved.
  FrozenColumns(QTableView* table, int count);
  void set_count(int count);
  [[nodiscard]] int count() const { return count_; }
  /// What lies over the table; for tests and pictures.
  [[nodiscard]] QTableView* overlay() const { return overlay_; }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void follow_columns();
  void place();
  QTableView* table_;
  QTableView* overlay_;
  int count_;
  bool moving_ = false;
};

}  // namespace cpfit::gui
