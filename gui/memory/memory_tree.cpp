#include "gui/memory/memory_tree.h"

#include <QFont>
#include <algorithm>
#include <map>

#include "gui/look/figures.h"

namespace cpfit::gui {

namespace {

void sort_by_bytes(std::vector<MemoryNode>& nodes) {
  std::ranges::stable_sort(nodes, [](const MemoryNode& a, const MemoryNode& b) { return a.bytes > b.bytes; });
}

void group_small(std::vector<MemoryNode>& tensors, Bytes whole) {
  constexpr double kSmall = 0.01;
  std::size_t first = kShownTensors;
  while (first < tensors.size() && tensors[first].bytes >= kSmall * whole) ++first;
  if (first + 1 >= tensors.size()) return;  // one alone needs no group
  MemoryNode other;
  other.component = tensors[first].component;
  other.children.assign(tensors.begin() + static_cast<std::ptrdiff_t>(first), tensors.end());
  tensors.resize(first);
  for (const MemoryNode& node : other.children) other.bytes += node.bytes;
  other.name = QObject::tr("other (%1)").arg(other.children.size());
  tensors.push_back(std::move(other));
}

}  // namespace

QString title_of(Component component) {
  switch (component) {
    case Component::kCpBuffers:
      return QObject::tr("CP buffers");
    case Component::kReservedExtra:
      return QObject::tr("Allocator slack");
    case Component::kContext:
      return QObject::tr("CUDA context");
    case Component::kLoss:
      return QObject::tr("Loss and logits");
    default:
      return label_of(name_of(component));
  }
}

std::vector<MemoryNode> memory_nodes(const StageLedger& ledger) {
  std::map<Component, MemoryNode> by_component;
  for (const LedgerEntry& entry : ledger.entries) {
    if (entry.bytes.value() <= 0.0) continue;
    MemoryNode& parent = by_component[entry.component];
    parent.component = entry.component;
    parent.name = title_of(entry.component);
    parent.bytes += entry.bytes;
    parent.children.push_back(
        {text_of(entry.tensor), text_of(entry.formula), text_of(entry.source), entry.component, entry.bytes, {}});
  }
  std::vector<MemoryNode> nodes;
  for (auto& [component, node] : by_component) {
    sort_by_bytes(node.children);
    group_small(node.children, ledger.summary.device);
    nodes.push_back(std::move(node));
  }
  sort_by_bytes(nodes);
  return nodes;
}

std::vector<MemoryNode> memory_nodes(const std::array<Bytes, kComponentCount>& components) {
  std::vector<MemoryNode> nodes;
  for (int i = 0; i < kComponentCount; ++i) {
    const auto component = static_cast<Component>(i);
    const Bytes bytes = components[static_cast<std::size_t>(i)];
    if (bytes.value() > 0.0) nodes.push_back({title_of(component), {}, {}, component, bytes, {}});
  }
  sort_by_bytes(nodes);
  return nodes;
}

void MemoryTree::set_nodes(std::vector<MemoryNode> nodes) {
  beginResetModel();
  nodes_ = std::move(nodes);
  places_.clear();
  number(nodes_, nullptr);
  endResetModel();
}

void MemoryTree::number(const std::vector<MemoryNode>& nodes, const MemoryNode* parent) {
  for (std::size_t row = 0; row < nodes.size(); ++row) {
    places_.push_back({&nodes[row], parent, static_cast<int>(row)});
    number(nodes[row].children, &nodes[row]);
  }
}

const MemoryNode* MemoryTree::node(const QModelIndex& index) const {
  return index.isValid() && index.internalId() < places_.size() ? places_[index.internalId()].node : nullptr;
}

QModelIndex MemoryTree::index(int row, int column, const QModelIndex& parent) const {
  const std::vector<MemoryNode>& siblings = parent.isValid() ? node(parent)->children : nodes_;
  if (row < 0 || row >= static_cast<int>(siblings.size()) || column < 0 || column >= columnCount()) return {};
  const MemoryNode* wanted = &siblings[static_cast<std::size_t>(row)];
  const auto place = std::ranges::find(places_, wanted, &Place::node);
  return createIndex(row, column, static_cast<quintptr>(place - places_.begin()));
}

QModelIndex MemoryTree::parent(const QModelIndex& child) const {
  if (!child.isValid()) return {};
  const MemoryNode* above = places_[child.internalId()].parent;
  if (above == nullptr) return {};
  const auto place = std::ranges::find(places_, above, &Place::node);
  return createIndex(place->row, 0, static_cast<quintptr>(place - places_.begin()));
}

int MemoryTree::rowCount(const QModelIndex& parent) const {
  if (parent.column() > 0) return 0;
  return static_cast<int>(parent.isValid() ? node(parent)->children.size() : nodes_.size());
}

int MemoryTree::columnCount(const QModelIndex&) const { return 4; }

QVariant MemoryTree::data(const QModelIndex& index, int role) const {
  const MemoryNode* at = node(index);
  if (at == nullptr) return {};
  if (role == Qt::TextAlignmentRole && index.column() == 1) return static_cast<int>(Qt::AlignRight | Qt::AlignVCenter);
  if (role == Qt::UserRole) return at->bytes.value();
  if (role == Qt::ToolTipRole) {
    if (index.column() == 1) return QStringLiteral("%1 B").arg(at->bytes.value(), 0, 'f', 0);
    if (!at->formula.isEmpty())
      return QStringLiteral("<p>%1 = %2<br>%3</p>")
          .arg(at->name.toHtmlEscaped(), at->formula.toHtmlEscaped(), at->source.toHtmlEscaped());
    return {};
  }
  if (role == Qt::FontRole && !index.parent().isValid()) {
    QFont font;
    font.setBold(index.column() < 2);
    return font;
  }
  if (role != Qt::DisplayRole) return {};
  switch (index.column()) {
    case 0:
      return at->name;
    case 1:
      return bytes_text(at->bytes);
    case 2:
      return at->formula;
    default:
      return at->source;
  }
}

QVariant MemoryTree::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  const QString names[] = {tr("Class and tensor"), tr("Bytes"), tr("Formula"), tr("Source")};
  return section >= 0 && section < 4 ? names[section] : QVariant();
}

}  // namespace cpfit::gui
