#include "gui/results/result_table.h"

#include <QFont>
#include <algorithm>

#include "gui/look/figures.h"

namespace cpfit::gui {

namespace {

/// A sign beside the word: the verdict is never a colour alone.
QString verdict_sign(RowVerdict verdict) {
  switch (verdict) {
    case RowVerdict::kShip:
      return QStringLiteral("★");
    case RowVerdict::kControl:
      return QStringLiteral("◇");
    case RowVerdict::kOk:
      return QStringLiteral("✓");
    case RowVerdict::kAtRisk:
      return QStringLiteral("!");
    default:
      return QStringLiteral("✕");
  }
}

}  // namespace

std::vector<std::size_t> ResultTable::usual_columns() {
  std::vector<std::size_t> columns;
  for (std::size_t i = 0; i < result_fields().size(); ++i) {
    if (result_fields()[i].shown) columns.push_back(i);
  }
  return columns;
}

ResultTable::ResultTable(ResultBook& book, QObject* parent)
    : QAbstractTableModel(parent),
      book_(book),
      columns_(usual_columns()),
      keys_({{field_named("verdict"), false}, {field_named("step"), false}}) {
  // A new set first, so that no view asks for rows of one that is gone.
  connect(&book_, &ResultBook::set_changed, this, &ResultTable::refill);
  connect(&book_, &ResultBook::rows_changed, this, &ResultTable::refill);
  refill();
}

void ResultTable::refill() {
  beginResetModel();
  set_ = book_.set();
  order_ = book_.rows().rows;
  lines_.assign(set_ ? set_->size() : 0, -1);
  if (set_) sort_rows(*set_, keys_, order_);
  for (std::size_t line = 0; line < order_.size(); ++line) lines_[order_[line]] = static_cast<std::int32_t>(line);
  endResetModel();
}

void ResultTable::set_columns(std::vector<std::size_t> columns) {
  beginResetModel();
  columns_ = std::move(columns);
  endResetModel();
}

void ResultTable::set_keys(std::vector<SortKey> keys) {
  keys_ = std::move(keys);
  if (!set_) return;
  emit layoutAboutToBeChanged();
  const QModelIndexList before = persistentIndexList();
  std::vector<std::uint32_t> rows;
  for (const QModelIndex& index : before) rows.push_back(row_at(index.row()));
  sort_rows(*set_, keys_, order_);
  for (std::size_t line = 0; line < order_.size(); ++line) lines_[order_[line]] = static_cast<std::int32_t>(line);
  QModelIndexList after;
  for (qsizetype i = 0; i < before.size(); ++i)
    after.append(index(line_of(rows[static_cast<std::size_t>(i)]), before[i].column()));
  changePersistentIndexList(before, after);
  emit layoutChanged();
}

void ResultTable::sort(int column, Qt::SortOrder order) {
  if (column < 0 || column >= static_cast<int>(columns_.size())) return;
  set_keys({{columns_[static_cast<std::size_t>(column)], order == Qt::DescendingOrder}});
}

int ResultTable::line_of(std::uint32_t row) const { return row < lines_.size() ? lines_[row] : -1; }
int ResultTable::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(order_.size()); }
int ResultTable::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(columns_.size()) + 1;
}

QVariant ResultTable::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
  const ResultSet& set = *set_;
  const std::uint32_t row = row_at(index.row());
  const bool why = index.column() == static_cast<int>(columns_.size());
  if (role == Qt::ToolTipRole) return book_.row_text(row);
  if (why) return role == Qt::DisplayRole ? QVariant(reason_of(set, row)) : QVariant();
  const std::size_t at = columns_[static_cast<std::size_t>(index.column())];
  const ResultField& field = result_fields()[at];
  const double value = set.columns[at].values[row];
  switch (role) {
    case Qt::DisplayRole:
      if (field.group == FieldGroup::kVerdict) {
        QString text = verdict_sign(set.verdicts[row]) + QLatin1Char(' ') + name_of(set.verdicts[row]);
        if (!policy_of(set, row).isEmpty()) text += QStringLiteral("  ≠");
        if (book_.other() == row) text += QStringLiteral("  B");
        return text;
      }
      return figure_text(set.columns[at], field, value);
    case Qt::TextAlignmentRole:
      return field.word ? QVariant() : QVariant(static_cast<int>(Qt::AlignRight | Qt::AlignVCenter));
    case Qt::FontRole:
      if (set.verdicts[row] == RowVerdict::kShip) {
        QFont bold;
        bold.setBold(true);
        return bold;
      }
      return {};
    default:
      return {};
  }
}

QVariant ResultTable::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || section < 0 || section > static_cast<int>(columns_.size())) return {};
  if (section == static_cast<int>(columns_.size())) {
    if (role == Qt::DisplayRole) return tr("Why");
    return role == Qt::ToolTipRole ? QVariant(tr("why it was or was not chosen")) : QVariant();
  }
  const ResultField& field = result_fields()[columns_[static_cast<std::size_t>(section)]];
  if (role == Qt::DisplayRole) return header_text(field);
  if (role == Qt::ToolTipRole)
    return tr("%1. In a filter: %2. A click sorts, with Shift by one more column.").arg(text_of(field.help), text_of(field.key));
  return {};
}

QString ResultTable::csv() const {
  if (book_.is_empty()) return {};
  const ResultSet& set = *set_;
  QStringList head;
  for (const std::size_t at : columns_) {
    const ResultField& field = result_fields()[at];
    QString name = text_of(field.key);
    if (!field.unit.empty()) name += QStringLiteral(" [%1]").arg(text_of(field.unit));
    head.append(csv_field(name));
  }
  head << QStringLiteral("why") << QStringLiteral("recipe");
  QString text = head.join(QLatin1Char(',')) + QLatin1Char('\n');
  for (const std::uint32_t row : order_) {
    for (const std::size_t at : columns_) {
      const ResultField& field = result_fields()[at];
      const double value = set.columns[at].values[row];
      text += csv_field(field.word ? figure_text(set.columns[at], field, value) : QString::number(value, 'g', 9));
      text += QLatin1Char(',');
    }
    text += csv_field(reason_of(set, row)) + QLatin1Char(',') + csv_field(text_of(to_complete_text(set.candidates[row].recipe))) +
            QLatin1Char('\n');
  }
  return text;
}

void ResultTable::marks_changed() {
  if (rowCount() > 0) emit dataChanged(index(0, 0), index(rowCount() - 1, 0), {Qt::DisplayRole});
}

}  // namespace cpfit::gui
