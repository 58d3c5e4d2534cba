// What one change would free: single edits ranked by bytes, with their cost in step time. Pure over the closed form's variations.
#pragma once

#include <QAbstractTableModel>
#include <map>
#include <string>
#include <vector>

#include "gui/study/estimate.h"

namespace cpfit::gui {

struct FreeingChange {
  std::string key, value;
  QString text;  // "CP 4 → 8"
  Bytes freed;
  double slower = 0;  // of the step; negative: faster
  Fit fit = Fit::kOom;
  QString caution;  // why the comparison is not an equal one; empty when it is
};

/// For each parameter that leaves the question as it is (sizes, exchange, recompute, micro-batch, state sharding, chunks): the
/// variation that frees most, and the one that makes it fit for the least time. Sorted: those that fit first, then by bytes.
[[nodiscard]] std::vector<FreeingChange> freeing_changes(const Estimate& estimate,
                                                         const std::map<std::string, std::vector<Variation>>& variations);

class FreeList : public QAbstractTableModel {
  Q_OBJECT
 public:
  explicit FreeList(QObject* parent = nullptr) : QAbstractTableModel(parent) {}
  void set_changes(std::vector<FreeingChange> changes);
  [[nodiscard]] const std::vector<FreeingChange>& changes() const { return changes_; }
  [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
  [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  std::vector<FreeingChange> changes_;
};

}  // namespace cpfit::gui
