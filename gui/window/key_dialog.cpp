#include "gui/window/key_dialog.h"

#include <QAction>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QKeySequenceEdit>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/view/quiet_table.h"

namespace cpfit::gui {

namespace {

QString native(const QString& keys) {
  QStringList texts;
  for (const QKeySequence& key : keys_of(keys)) texts.append(key.toString(QKeySequence::NativeText));
  return texts.join(QStringLiteral(", "));
}

QString name_of(const ActionSpec& spec) {
  return AppActions::plain(spec.menu).section(QLatin1Char('/'), 0, 0) + QStringLiteral(": ") + AppActions::plain(spec.text);
}

}  // namespace

KeyTable::KeyTable(const AppActions& actions, QObject* parent) : QAbstractTableModel(parent), actions_(actions) { show_rows({}); }

void KeyTable::show_rows(const QString& filter) {
  beginResetModel();
  rows_.clear();
  const QStringList words = filter.split(QLatin1Char(' '), Qt::SkipEmptyParts);
  for (std::size_t i = 0; i < actions_.specs().size(); ++i) {
    const ActionSpec& spec = actions_.specs()[i];
    const QString text = name_of(spec) + QLatin1Char(' ') + native(actions_.keys(spec.id)) + QLatin1Char(' ') + spec.help;
    if (std::ranges::all_of(words, [&](const QString& word) { return text.contains(word, Qt::CaseInsensitive); }))
      rows_.push_back(i);
  }
  endResetModel();
}

void KeyTable::refresh() {
  if (!rows_.empty()) emit dataChanged(index(0, 0), index(rowCount() - 1, columnCount() - 1));
}

const ActionSpec& KeyTable::spec(int row) const { return actions_.specs()[rows_[static_cast<std::size_t>(row)]]; }

int KeyTable::row_of(const QString& id) const {
  const auto found = std::ranges::find_if(rows_, [&](std::size_t at) { return actions_.specs()[at].id == id; });
  return found == rows_.end() ? -1 : static_cast<int>(found - rows_.begin());
}

int KeyTable::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(rows_.size()); }
int KeyTable::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : 3; }

QVariant KeyTable::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
  const ActionSpec& row = spec(index.row());
  const bool own = actions_.own_keys().contains(row.id);
  if (role == Qt::FontRole && index.column() == 1 && own) {
    QFont font;
    font.setBold(true);
    return font;
  }
  if (role == Qt::ToolTipRole && own) return tr("Changed; by default %1").arg(row.keys.isEmpty() ? tr("none") : native(row.keys));
  if (role != Qt::DisplayRole) return {};
  switch (index.column()) {
    case 0:
      return name_of(row);
    case 1: {
      const QString keys = native(actions_.keys(row.id));
      return own ? tr("%1 ✎").arg(keys.isEmpty() ? QStringLiteral("–") : keys) : keys;
    }
    default:
      return row.help;
  }
}

QVariant KeyTable::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole || section < 0 || section > 2) return {};
  const QString names[] = {tr("Command"), tr("Keys"), tr("Does")};
  return names[section];
}

KeyDialog::KeyDialog(AppActions& actions, QWidget* parent)
    : QDialog(parent),
      actions_(actions),
      model_(new KeyTable(actions, this)),
      filter_(new QLineEdit(this)),
      table_(new QTableView(this)),
      label_(new QLabel(this)),
      field_(new QKeySequenceEdit(this)),
      set_(new QPushButton(this)),
      clear_(new QPushButton(tr("&No key"), this)),
      default_(new QPushButton(tr("Back to its &default"), this)),
      defaults_(new QPushButton(tr("&All to their defaults"), this)),
      conflict_(new QLabel(this)) {
  setWindowTitle(tr("Change keys"));
  setObjectName(QStringLiteral("keys"));
  filter_->setPlaceholderText(tr("Filter: a command, a key, what it does"));
  filter_->setAccessibleName(tr("Filter of commands"));
  filter_->setClearButtonEnabled(true);
  table_->setModel(model_);
  table_->setAccessibleName(tr("Commands and their keys"));
  make_quiet(table_);
  table_->horizontalHeader()->setStretchLastSection(true);
  field_->setAccessibleName(tr("Press the new key"));
  conflict_->setWordWrap(true);
  conflict_->setAccessibleName(tr("Who has this key"));
  conflict_->setMinimumHeight(fontMetrics().lineSpacing());
  set_->setDefault(true);
  for (QPushButton* button : {clear_, default_, defaults_}) button->setAutoDefault(false);
  auto* close = new QPushButton(tr("Close"), this);
  close->setAutoDefault(false);
  auto* line = new QHBoxLayout;
  line->addWidget(label_);
  line->addWidget(field_, 1);
  for (QPushButton* button : {set_, clear_, default_}) line->addWidget(button);
  auto* foot = new QHBoxLayout;
  foot->addWidget(defaults_);
  foot->addStretch(1);
  foot->addWidget(close);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(16, 14, 16, 14);
  layout->setSpacing(8);
  layout->addWidget(filter_);
  layout->addWidget(table_, 1);
  layout->addLayout(line);
  layout->addWidget(conflict_);
  layout->addLayout(foot);
  connect(filter_, &QLineEdit::textChanged, this, [this](const QString& text) {
    const QString kept = chosen();
    model_->show_rows(text);
    choose(kept);
  });
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this] {
    field_->clear();
    refresh();
  });
  connect(table_, &QTableView::activated, this, [this] { field_->setFocus(); });
  connect(field_, &QKeySequenceEdit::keySequenceChanged, this, &KeyDialog::refresh);
  connect(set_, &QPushButton::clicked, this, &KeyDialog::set);
  connect(clear_, &QPushButton::clicked, this, [this] { apply(with_keys(actions_.specs(), actions_.own_keys(), chosen(), {})); });
  connect(default_, &QPushButton::clicked, this, [this] {
    const QString id = chosen();
    KeyMap map = actions_.own_keys();
    map.erase(id);
    // Who has a key of these by now gives it back.
    for (const QKeySequence& key : keys_of(keys_under(actions_.specs(), map, id))) {
      for (const KeyConflict& conflict : key_conflicts(actions_.specs(), map, id, key)) {
        if (!conflict.id.isEmpty()) map = without_key(actions_.specs(), std::move(map), conflict.id, key);
      }
    }
    apply(std::move(map));
  });
  connect(defaults_, &QPushButton::clicked, this, [this] { apply({}); });
  connect(close, &QPushButton::clicked, this, &QDialog::close);
  resize(820, 620);
  table_->setColumnWidth(0, 240);
  table_->setColumnWidth(1, 170);
  table_->selectRow(0);
  refresh();
}

QString KeyDialog::chosen() const {
  const QModelIndex now = table_->currentIndex();
  return now.isValid() ? model_->spec(now.row()).id : QString();
}

void KeyDialog::choose(const QString& id) {
  const int row = model_->row_of(id);
  table_->setCurrentIndex(model_->index(row >= 0 ? row : 0, 0));
  refresh();
}

void KeyDialog::apply(KeyMap map) {
  actions_.set_own_keys(std::move(map));
  model_->refresh();
  field_->clear();
  refresh();
}

void KeyDialog::set() {
  const QString id = chosen();
  const QKeySequence key = field_->keySequence();
  if (id.isEmpty() || key.isEmpty()) return;
  KeyMap map = actions_.own_keys();
  // Two commands with one key would both be dead: the other one gives it up.
  for (const KeyConflict& conflict : key_conflicts(actions_.specs(), map, id, key)) {
    if (conflict.id.isEmpty()) return;
    map = without_key(actions_.specs(), std::move(map), conflict.id, key);
  }
  apply(with_keys(actions_.specs(), std::move(map), id, keys_text({key})));
}

void KeyDialog::refresh() {
  const QString id = chosen();
  const QKeySequence key = field_->keySequence();
  label_->setText(id.isEmpty() ? tr("No command is chosen.")
                               : tr("New key for “%1”:").arg(AppActions::plain(actions_.find(id)->text())));
  QStringList others;
  bool of_views = false;
  for (const KeyConflict& conflict : key_conflicts(actions_.specs(), actions_.own_keys(), id, key)) {
    others.append(conflict.text);
    of_views = of_views || conflict.id.isEmpty();
  }
  QString text;
  if (of_views)
    text = tr("⚠ %1 belongs to %2: choose another, or one with Ctrl.")
               .arg(key.toString(QKeySequence::NativeText), others.join(QStringLiteral(", ")));
  else if (!others.isEmpty())
    text = tr("⚠ %1 is the key of %2, which would have none of it then.")
               .arg(key.toString(QKeySequence::NativeText), others.join(QStringLiteral(", ")));
  conflict_->setText(text);
  set_->setText(others.isEmpty() || of_views ? tr("&Set") : tr("&Take it over"));
  set_->setEnabled(!id.isEmpty() && !key.isEmpty() && !of_views);
  clear_->setEnabled(!id.isEmpty() && !actions_.keys(id).isEmpty());
  default_->setEnabled(actions_.own_keys().contains(id));
  defaults_->setEnabled(!actions_.own_keys().empty());
  setAccessibleDescription(text);
}

}  // namespace cpfit::gui
