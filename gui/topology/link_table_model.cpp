#include "gui/topology/link_table_model.h"

#include <QFont>
#include <algorithm>
#include <numeric>

#include "gui/look/figures.h"
#include "model/quantity/text.h"

namespace cpfit::gui {

void LinkTableModel::show(std::shared_ptr<const NetworkPicture> picture, const LinkEdits& edits) {
  beginResetModel();
  picture_ = std::move(picture);
  edits_ = edits;
  rows_.assign(picture_ ? picture_->links.size() : 0, 0);
  std::iota(rows_.begin(), rows_.end(), 0);
  order();
  endResetModel();
}

int LinkTableModel::rowOf(std::int32_t link) const {
  const auto found = std::find(rows_.begin(), rows_.end(), link);
  return found == rows_.end() ? -1 : static_cast<int>(found - rows_.begin());
}

int LinkTableModel::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(rows_.size()); }
int LinkTableModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(kColumns); }

QVariant LinkTableModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role != Qt::DisplayRole) return {};
  if (orientation == Qt::Vertical) return section + 1;
  switch (section) {
    case kFrom:
      return tr("from");
    case kTo:
      return tr("to");
    case kClass:
      return tr("class");
    case kCapacity:
      return tr("capacity");
    case kLatency:
      return tr("latency");
    case kBytes:
      return tr("carries per step");
    case kShare:
      return tr("used");
    case kHighest:
      return tr("highest");
    case kBusiest:
      return tr("busiest at");
    case kFlows:
      return tr("flows");
    default:
      return {};
  }
}

QVariant LinkTableModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || !picture_) return {};
  const std::int32_t number = linkOf(index.row());
  const Link& link = picture_->topology().links()[static_cast<std::size_t>(number)];
  const LinkTraffic& traffic = picture_->links[static_cast<std::size_t>(number)];
  const auto edit = edits_.find(number);
  const bool edited = edit != edits_.end();
  if (role == Qt::TextAlignmentRole)
    return QVariant::fromValue(Qt::AlignVCenter | (index.column() <= kClass ? Qt::AlignLeft : Qt::AlignRight));
  if (role == Qt::FontRole && edited && (index.column() == kCapacity || index.column() == kLatency)) {
    QFont font;
    font.setItalic(true);
    return font;
  }
  if (role == Qt::ToolTipRole && edited) return tr("edited: a what-if");
  if (role != Qt::DisplayRole && role != Qt::EditRole) return {};
  const std::vector<Vertex>& vertices = picture_->topology().vertices();
  const QString mark = edited && role == Qt::DisplayRole ? QStringLiteral("✎ ") : QString();
  switch (index.column()) {
    case kFrom:
      return text_of(vertices[static_cast<std::size_t>(link.from)].name);
    case kTo:
      return text_of(vertices[static_cast<std::size_t>(link.to)].name);
    case kClass:
      return text_of(name_of(link.link_class));
    case kCapacity:
      return mark + rate_text(edited ? edit->second.capacity : link.capacity);
    case kLatency:
      return mark + time_text(edited ? edit->second.latency : link.latency);
    case kBytes:
      return traffic.bytes > 0 ? bytes_text(Bytes(traffic.bytes)) : QString();
    case kShare:
      return traffic.share > 0 ? share_text(traffic.share) : QString();
    case kHighest:
      return traffic.highest > 0 ? share_text(traffic.highest) : QString();
    case kBusiest:
      return traffic.busiest_at >= 0 ? time_text(Seconds(static_cast<double>(traffic.busiest_at) * 1e-12)) : QString();
    case kFlows:
      return traffic.flows > 0 ? count_text(traffic.flows) : QString();
    default:
      return {};
  }
}

Qt::ItemFlags LinkTableModel::flags(const QModelIndex& index) const {
  Qt::ItemFlags flags = QAbstractTableModel::flags(index);
  if (index.isValid() && (index.column() == kCapacity || index.column() == kLatency)) flags |= Qt::ItemIsEditable;
  return flags;
}

bool LinkTableModel::setData(const QModelIndex& index, const QVariant& value, int role) {
  if (role != Qt::EditRole || !index.isValid() || !picture_) return false;
  const std::int32_t number = linkOf(index.row());
  const Link& link = picture_->topology().links()[static_cast<std::size_t>(number)];
  const auto known = edits_.find(number);
  const LinkEdit before = known == edits_.end() ? LinkEdit{link.capacity, link.latency} : known->second;
  LinkEdit edit = before;
  const std::string text = to_std(value.toString().replace(QStringLiteral("µ"), QStringLiteral("u")));
  const auto refuse = [&](const Problems& problems) {
    emit editRefused(sentence_of(problems.front()));
    return false;
  };
  if (index.column() == kCapacity) {
    const Outcome<BytesPerSecond> rate = parse_rate(text);
    if (!rate.ok()) return refuse(rate.problems());
    edit.capacity = *rate;
  } else {
    const Outcome<Seconds> latency = parse_time(text);
    if (!latency.ok()) return refuse(latency.problems());
    edit.latency = *latency;
  }
  const Outcome<Cluster> changed = edited_cluster(picture_->cluster, {{number, edit}});
  if (!changed.ok()) return refuse(changed.problems());
  if (edit == before) return false;
  emit editRequested(number, edit);
  return true;
}

double LinkTableModel::key_of(std::int32_t number, int column) const {
  const Link& link = picture_->topology().links()[static_cast<std::size_t>(number)];
  const LinkTraffic& traffic = picture_->links[static_cast<std::size_t>(number)];
  switch (column) {
    case kFrom:
      return link.from;
    case kTo:
      return link.to;
    case kClass:
      return static_cast<double>(link.link_class);
    case kCapacity:
      return link.capacity.value();
    case kLatency:
      return link.latency.value();
    case kBytes:
      return traffic.bytes;
    case kShare:
      return traffic.share;
    case kHighest:
      return traffic.highest;
    case kBusiest:
      return static_cast<double>(traffic.busiest_at);
    case kFlows:
      return static_cast<double>(traffic.flows);
    default:
      return 0;
  }
}

void LinkTableModel::order() {
  if (!picture_) return;
  std::vector<double> keys(rows_.size());
  for (std::size_t l = 0; l < keys.size(); ++l) keys[l] = key_of(static_cast<std::int32_t>(l), column_);
  std::sort(rows_.begin(), rows_.end(), [&](std::int32_t a, std::int32_t b) {
    const double x = keys[static_cast<std::size_t>(a)], y = keys[static_cast<std::size_t>(b)];
    return x != y ? (order_ == Qt::AscendingOrder ? x < y : x > y) : a < b;
  });
}

void LinkTableModel::sort(int column, Qt::SortOrder order_wanted) {
  if (column < 0) return;
  emit layoutAboutToBeChanged();
  const QModelIndexList before = persistentIndexList();
  std::vector<std::int32_t> held;
  for (const QModelIndex& index : before) held.push_back(linkOf(index.row()));
  column_ = column;
  order_ = order_wanted;
  order();
  QModelIndexList after;
  for (qsizetype i = 0; i < before.size(); ++i)
    after << createIndex(rowOf(held[static_cast<std::size_t>(i)]), before[i].column());
  changePersistentIndexList(before, after);
  emit layoutChanged();
}

}  // namespace cpfit::gui
