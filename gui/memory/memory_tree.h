// The memory of one stage as rows: components, their tensors with formula and source; the smallest together as "other (n)".
// Values and a model; no widget.
#pragma once

#include <QAbstractItemModel>
#include <QString>
#include <vector>

#include "model/memory/ledger.h"

namespace cpfit::gui {

struct MemoryNode {
  QString name, formula, source;
  Component component = Component::kWeights;
  Bytes bytes;
  std::vector<MemoryNode> children;
};

/// Components by bytes, largest first, empty ones left out; inside one the tensors by bytes. Beyond the largest `kShownTensors`
/// of a component, those below a hundredth of the stage stand under "other (n)".
inline constexpr std::size_t kShownTensors = 4;
[[nodiscard]] std::vector<MemoryNode> memory_nodes(const StageLedger& ledger);
/// Components alone: at moments of which the ledger has no tensors.
[[nodiscard]] std::vector<MemoryNode> memory_nodes(const std::array<Bytes, kComponentCount>& components);

[[nodiscard]] QString title_of(Component component);  // "CP buffers"

class MemoryTree : public QAbstractItemModel {
  Q_OBJECT
 public:
  explicit MemoryTree(QObject* parent = nullptr) : QAbstractItemModel(parent) {}
  void set_nodes(std::vector<MemoryNode> nodes);
  [[nodiscard]] const std::vector<MemoryNode>& nodes() const { return nodes_; }
  [[nodiscard]] const MemoryNode* node(const QModelIndex& index) const;

  [[nodiscard]] QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override;
  [[nodiscard]] QModelIndex parent(const QModelIndex& child) const override;
  [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
  [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  struct Place {
    const MemoryNode* node;
    const MemoryNode* parent;
    int row;
  };
  void number(const std::vector<MemoryNode>& nodes, const MemoryNode* parent);
  std::vector<MemoryNode> nodes_;
  std::vector<Place> places_;  // an index' id is its position here
};

}  // namespace cpfit::gui
