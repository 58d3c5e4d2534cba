#include "gui/window/app_actions.h"

#include <QAction>
#include <QMenu>
#include <QMenuBar>
#include <utility>

#include "gui/window/key_map.h"

namespace cpfit::gui {

AppActions::AppActions(QWidget* window) : QObject(window), window_(window) {}

QString AppActions::plain(const QString& text) {
  QString bare = text;
  bare.replace(QStringLiteral("&&"), QStringLiteral("\x01"));
  bare.remove(QLatin1Char('&'));
  bare.replace(QStringLiteral("\x01"), QStringLiteral("&"));
  return bare;
}

QAction* AppActions::add(const ActionSpec& spec, std::function<void()> run) {
  auto* action = new QAction(spec.text, window_);
  action->setObjectName(spec.id);
  action->setCheckable(spec.checkable);
  action->setShortcuts(keys_of(spec.keys));
  action->setShortcutContext(Qt::WindowShortcut);
  describe(*action, spec, {});
  connect(action, &QAction::triggered, this, [run = std::move(run)] { run(); });
  window_->addAction(action);
  specs_.push_back(spec);
  actions_[spec.id] = action;
  return action;
}

QAction* AppActions::find(const QString& id) const {
  const auto found = actions_.find(id);
  return found == actions_.end() ? nullptr : found->second;
}

void AppActions::describe(QAction& action, const ActionSpec& spec, const QString& why_not) const {
  QString tip = spec.help.isEmpty() ? plain(spec.text) : spec.help;
  if (!action.shortcut().isEmpty()) tip += QStringLiteral(" (%1)").arg(action.shortcut().toString(QKeySequence::NativeText));
  if (!why_not.isEmpty()) tip += QStringLiteral("\n") + tr("Not now: %1").arg(why_not);
  action.setToolTip(tip);
  action.setStatusTip(why_not.isEmpty() ? spec.help : tr("Not now: %1").arg(why_not));
}

void AppActions::set_reason(const QString& id, const QString& why_not) {
  QAction* action = find(id);
  if (action == nullptr) return;
  reasons_[id] = why_not;
  action->setEnabled(why_not.isEmpty());
  for (const ActionSpec& spec : specs_) {
    if (spec.id == id) describe(*action, spec, why_not);
  }
}

void AppActions::set_own_keys(KeyMap keys) {
  own_keys_ = std::move(keys);
  for (const ActionSpec& spec : specs_) {
    QAction& action = *find(spec.id);
    action.setShortcuts(keys_of(this->keys(spec.id)));
    describe(action, spec, reason(spec.id));
  }
}

QString AppActions::keys(const QString& id) const { return keys_under(specs_, own_keys_, id); }

QString AppActions::reason(const QString& id) const {
  const auto found = reasons_.find(id);
  return found == reasons_.end() ? QString() : found->second;
}

void AppActions::fill(QMenuBar& bar) const {
  std::map<QString, QMenu*> menus;
  for (const ActionSpec& spec : specs_) {
    QString path;
    QMenu* menu = nullptr;
    for (const QString& part : spec.menu.split(QLatin1Char('/'), Qt::SkipEmptyParts)) {
      path += QLatin1Char('/') + part;
      QMenu*& entry = menus[path];
      if (entry == nullptr) entry = menu == nullptr ? bar.addMenu(part) : menu->addMenu(part);
      menu = entry;
      menu->setToolTipsVisible(true);
    }
    if (menu == nullptr) continue;
    if (spec.separator_before) menu->addSeparator();
    menu->addAction(find(spec.id));
  }
}

std::vector<ViewKey> view_keys() {
  const auto tr = [](const char* text) { return QObject::tr(text); };
  return {
      {tr("Ctrl+wheel, W / S, + / −"), tr("zoom in, out at the pointer (timeline, curves)")},
      {tr("Shift+wheel, A / D, ← / →"), tr("pan")},
      {tr("Home"), tr("fit everything")},
      {tr("↑ / ↓ in a recipe row"), tr("next legal value up, down")},
      {tr("Page Up / Page Down in a recipe row"), tr("first, last legal value")},
      {tr("Double-click on a row's name"), tr("back to the scenario's value")},
      {tr("Enter, double-click in Results"), tr("make the chosen recipe the study's")},
      {tr("Shift+Space, Shift+click in Results"), tr("mark a recipe as B to compare with")},
      {tr("← / → in the scatter"), tr("along the front")},
      {tr("← / →, ↑ / ↓, Shift+↑ / ↓ on axes"), tr("choose an axis, move its upper, its lower edge")},
      {tr("Ctrl+← / →, F, L, Delete on axes"), tr("move the axis, turn it over, make it logarithmic, keep all of it")},
      {tr("← / →, X, Menu on a calibration's curve"), tr("choose a point, leave it out of the fit or count it again, say why")},
      {tr("Space on a padlock"), tr("lock a choice of the recipe, unlock it")},
      {tr("Esc"), tr("clear the focus range, then the selection")},
  };
}

}  // namespace cpfit::gui
