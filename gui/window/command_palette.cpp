#include "gui/window/command_palette.h"

#include <QAction>
#include <QHeaderView>
#include <QKeyEvent>
#include <QLineEdit>
#include <QListWidget>
#include <QTableWidget>
#include <QVBoxLayout>

#include "gui/window/app_actions.h"
#include "gui/window/palette_match.h"

namespace cpfit::gui {

CommandPalette::CommandPalette(const AppActions& actions, QWidget* parent)
    : QDialog(parent, Qt::Popup), actions_(actions), line_(new QLineEdit(this)), list_(new QListWidget(this)) {
  setAccessibleName(tr("Command palette"));
  line_->setPlaceholderText(tr("Type a command"));
  line_->setAccessibleName(tr("Command"));
  line_->setClearButtonEnabled(true);
  list_->setAccessibleName(tr("Commands"));
  list_->setUniformItemSizes(true);
  list_->setAlternatingRowColors(true);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(8, 8, 8, 8);
  layout->addWidget(line_);
  layout->addWidget(list_);
  line_->installEventFilter(this);
  connect(line_, &QLineEdit::textChanged, this, &CommandPalette::refill);
  connect(line_, &QLineEdit::returnPressed, this, &CommandPalette::run_current);
  connect(list_, &QListWidget::itemActivated, this, &CommandPalette::run_current);
  connect(list_, &QListWidget::itemClicked, this, &CommandPalette::run_current);
}

void CommandPalette::open_over_parent() {
  line_->clear();
  refill();
  const QRect frame = parentWidget()->geometry();
  const QSize size(std::min(680, frame.width() - 40), std::min(440, frame.height() - 80));
  setGeometry(QRect(QPoint(frame.center().x() - size.width() / 2, frame.top() + 60), size));
  show();
  line_->setFocus();
}

void CommandPalette::refill() {
  list_->clear();
  QStringList texts;
  for (const ActionSpec& spec : actions_.specs())
    texts.append(AppActions::plain(spec.menu).section(QLatin1Char('/'), 0, 0) + QStringLiteral(": ") +
                 AppActions::plain(spec.text));
  for (const int index : best_matches(line_->text(), texts)) {
    const ActionSpec& spec = actions_.specs()[static_cast<std::size_t>(index)];
    const QString why_not = actions_.reason(spec.id);
    QString text = texts[index];
    const QString keys = actions_.find(spec.id)->shortcut().toString(QKeySequence::NativeText);
    if (!keys.isEmpty()) text += QStringLiteral("   ") + keys;
    if (!why_not.isEmpty()) text += tr("   — not now: %1").arg(why_not);
    auto* item = new QListWidgetItem(text, list_);
    item->setData(Qt::UserRole, spec.id);
    item->setToolTip(spec.help);
    if (!why_not.isEmpty()) item->setForeground(palette().color(QPalette::Disabled, QPalette::Text));
  }
  list_->setCurrentRow(0);
}

void CommandPalette::run_current() {
  const QListWidgetItem* item = list_->currentItem();
  if (item == nullptr) return;
  QAction* action = actions_.find(item->data(Qt::UserRole).toString());
  if (action == nullptr || !action->isEnabled()) return;
  hide();
  action->trigger();
}

bool CommandPalette::eventFilter(QObject* watched, QEvent* event) {
  if (watched == line_ && event->type() == QEvent::KeyPress) {
    const int key = static_cast<QKeyEvent*>(event)->key();
    const int rows = list_->count();
    const int step = key == Qt::Key_Down       ? 1
                     : key == Qt::Key_Up       ? -1
                     : key == Qt::Key_PageDown ? 10
                     : key == Qt::Key_PageUp   ? -10
                                               : 0;
    if (step != 0 && rows > 0) {
      list_->setCurrentRow(std::clamp(list_->currentRow() + step, 0, rows - 1));
      return true;
    }
  }
  return QDialog::eventFilter(watched, event);
}

KeyList::KeyList(const AppActions& actions, QWidget* parent) : QDialog(parent) {
  setWindowTitle(tr("All keys"));
  auto* table = new QTableWidget(this);
  table->setAccessibleName(tr("All keys"));
  table->setColumnCount(2);
  table->setHorizontalHeaderLabels({tr("Key"), tr("Does")});
  table->verticalHeader()->hide();
  table->horizontalHeader()->setStretchLastSection(true);
  table->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table->setSelectionBehavior(QAbstractItemView::SelectRows);
  table->setAlternatingRowColors(true);
  const auto add = [table](const QString& keys, const QString& does) {
    const int row = table->rowCount();
    table->insertRow(row);
    table->setItem(row, 0, new QTableWidgetItem(keys));
    table->setItem(row, 1, new QTableWidgetItem(does));
  };
  for (const ActionSpec& spec : actions.specs()) {
    QStringList keys;
    for (const QKeySequence& key : actions.find(spec.id)->shortcuts()) keys.append(key.toString(QKeySequence::NativeText));
    if (keys.isEmpty()) continue;
    add(keys.join(QStringLiteral(", ")),
        AppActions::plain(spec.text) + (spec.help.isEmpty() ? QString() : QStringLiteral(": ") + spec.help));
  }
  for (const ViewKey& key : view_keys()) add(key.keys, key.does);
  table->resizeColumnToContents(0);
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(table);
  resize(760, 560);
}

}  // namespace cpfit::gui
