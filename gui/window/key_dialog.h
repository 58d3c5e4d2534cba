// The keys of all commands, to be changed: a table of the action table, a field that takes the next key pressed, who has that key
// already, and the way back to the table's own. What is set holds at once.
#pragma once

#include <QAbstractTableModel>
#include <QDialog>

#include "gui/window/key_map.h"

class QKeySequenceEdit;
class QLabel;
class QLineEdit;
class QPushButton;
class QTableView;

namespace cpfit::gui {

/// Command, keys, what it does. Rows whose texts contain every word of a filter.
class KeyTable : public QAbstractTableModel {
  Q_OBJECT
 public:
  KeyTable(const AppActions& actions, QObject* parent = nullptr);
  void show_rows(const QString& filter);
  /// Keys have changed, rows have not.
  void refresh();
  [[nodiscard]] const ActionSpec& spec(int row) const;
  [[nodiscard]] int row_of(const QString& id) const;  // -1: not shown

  [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
  [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  const AppActions& actions_;
  std::vector<std::size_t> rows_;
};

class KeyDialog : public QDialog {
  Q_OBJECT
 public:
  KeyDialog(AppActions& actions, QWidget* parent);
  [[nodiscard]] QTableView* table() const { return table_; }
  [[nodiscard]] KeyTable* model() const { return model_; }
  [[nodiscard]] QLineEdit* filter() const { return filter_; }
  [[nodiscard]] QKeySequenceEdit* field() const { return field_; }
  [[nodiscard]] QPushButton* set_button() const { return set_; }
  [[nodiscard]] QPushButton* clear_button() const { return clear_; }
  [[nodiscard]] QPushButton* default_button() const { return default_; }
  [[nodiscard]] QPushButton* defaults_button() const { return defaults_; }
  [[nodiscard]] QLabel* conflict() const { return conflict_; }
  void choose(const QString& id);

 private:
  [[nodiscard]] QString chosen() const;  // id; empty: none
  void set();
  void apply(KeyMap map);
  void refresh();
  AppActions& actions_;
  KeyTable* model_;
  QLineEdit* filter_;
  QTableView* table_;
  QLabel* label_;
  QKeySequenceEdit* field_;
  QPushButton* set_;
  QPushButton* clear_;
  QPushButton* default_;
  QPushButton* defaults_;
  QLabel* conflict_;
};

}  // namespace cpfit::gui
