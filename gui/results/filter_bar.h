// The one filter over table, scatter and axes: where results come from, a field that understands "cp>=4, memory<70GiB", a chip
// with a cross per limit, two switches, and how many are left.
#pragma once

#include <QWidget>

#include "gui/results/result_book.h"

class QCheckBox;
class QComboBox;
class QHBoxLayout;
class QLabel;
class QLineEdit;
class QToolButton;

namespace cpfit::gui {

class FilterBar : public QWidget {
  Q_OBJECT
 public:
  explicit FilterBar(ResultBook& book, QWidget* parent = nullptr);
  [[nodiscard]] QLineEdit* field() const { return field_; }
  [[nodiscard]] QCheckBox* fits_only() const { return fits_; }
  [[nodiscard]] QCheckBox* front_only() const { return front_; }
  [[nodiscard]] QComboBox* places() const { return places_; }
  [[nodiscard]] QToolButton* kept() const { return kept_; }
  /// "214 of 1,560 recipes, 31 on the front".
  [[nodiscard]] QString count_line() const;
  /// A widget of the view's own at the end of the first line.
  void add_tool(QWidget* tool);

 signals:
  void said(const QString& sentence);

 private:
  void refresh_places();
  void refresh();
  void take_text();
  void fill_kept_menu();
  ResultBook& book_;
  QComboBox* places_;
  QLineEdit* field_;
  QCheckBox* fits_;
  QCheckBox* front_;
  QToolButton* kept_;
  QLabel* count_;
  QHBoxLayout* first_;
  QWidget* chips_;
  QHBoxLayout* chip_row_;
  bool filling_ = false;
};

}  // namespace cpfit::gui
