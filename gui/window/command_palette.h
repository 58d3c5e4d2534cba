// The command palette: every action by a few letters of its name; what cannot be done now says why.
#pragma once

#include <QDialog>

class QLineEdit;
class QListWidget;

namespace cpfit::gui {

class AppActions;

class CommandPalette : public QDialog {
  Q_OBJECT
 public:
  CommandPalette(const AppActions& actions, QWidget* parent);
  /// Shows it over the parent, with an empty line.
  void open_over_parent();

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void refill();
  void run_current();
  const AppActions& actions_;
  QLineEdit* line_;
  QListWidget* list_;
};

/// All keys, those of the actions and those of the views, as a table.
class KeyList : public QDialog {
  Q_OBJECT
 public:
  KeyList(const AppActions& actions, QWidget* parent);
};

}  // namespace cpfit::gui
