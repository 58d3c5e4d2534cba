// Every command of the program, once: id, menu, text, key, what it does. Menus, palette, tooltips and the list of keys are made
// from this table; what an action does is connected by whoever can do it.
#pragma once

#include <QKeySequence>
#include <QList>
#include <QObject>
#include <QString>
#include <functional>
#include <map>
#include <vector>

class QAction;
class QMenuBar;
class QWidget;

namespace cpfit::gui {

struct ActionSpec {
  QString id;    // "file.open"
  QString menu;  // "&File"; sub-menus behind a slash: "&View/&Theme"
  QString text;  // "&Open…"
  QString keys;  // portable text, several behind "; "
  QString help;  // one sentence
  bool checkable = false;
  bool separator_before = false;
};

/// Keys of an action by its id, portable text, several behind "; "; empty: it has none. Actions that are not named have the
/// table's.
using KeyMap = std::map<QString, QString>;

class AppActions : public QObject {
  Q_OBJECT
 public:
  /// Actions belong to `window`, so that their keys work wherever the focus is.
  explicit AppActions(QWidget* window);

  /// Adds a command with what it does. An id is used once.
  QAction* add(const ActionSpec& spec, std::function<void()> run);
  [[nodiscard]] QAction* find(const QString& id) const;
  [[nodiscard]] const std::vector<ActionSpec>& specs() const { return specs_; }

  /// What a person set, in place of the table's keys; see key_map.h.
  [[nodiscard]] const KeyMap& own_keys() const { return own_keys_; }
  void set_own_keys(KeyMap keys);
  /// The keys of an action now, portable text.
  [[nodiscard]] QString keys(const QString& id) const;

  /// Enabled when the reason is empty; the reason stands in the tooltip, the status bar and the palette.
  void set_reason(const QString& id, const QString& why_not);
  [[nodiscard]] QString reason(const QString& id) const;

  void fill(QMenuBar& bar) const;
  /// "Open…" without the mnemonic.
  [[nodiscard]] static QString plain(const QString& text);

 private:
  void describe(QAction& action, const ActionSpec& spec, const QString& why_not) const;
  QWidget* window_;
  std::vector<ActionSpec> specs_;
  std::map<QString, QAction*> actions_;
  std::map<QString, QString> reasons_;
  KeyMap own_keys_;
};

/// Keys that views handle themselves while they have the focus; listed with those of the actions.
struct ViewKey {
  QString keys, does;
};
[[nodiscard]] std::vector<ViewKey> view_keys();

}  // namespace cpfit::gui
