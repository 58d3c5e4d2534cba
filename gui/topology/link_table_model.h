// Links as rows: capacity, latency, what they carry, their used share, when they are busiest. Capacity and latency are edited in
// place; what a person typed goes out as a request, because edits are undoable and not this table's to keep.
#pragma once

#include <QAbstractTableModel>
#include <memory>
#include <vector>

#include "gui/topology/network_picture.h"

namespace cpfit::gui {

class LinkTableModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Column { kFrom, kTo, kClass, kCapacity, kLatency, kBytes, kShare, kHighest, kBusiest, kFlows, kColumns };
  using QAbstractTableModel::QAbstractTableModel;

  void show(std::shared_ptr<const NetworkPicture> picture, const LinkEdits& edits);
  [[nodiscard]] std::int32_t linkOf(int row) const { return rows_[static_cast<std::size_t>(row)]; }
  [[nodiscard]] int rowOf(std::int32_t link) const;

  [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
  [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
  [[nodiscard]] Qt::ItemFlags flags(const QModelIndex& index) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role) override;
  void sort(int column, Qt::SortOrder order) override;

 signals:
  void editRequested(int link, cpfit::gui::LinkEdit edit);
  void editRefused(const QString& sentence);

 private:
  void order();
  [[nodiscard]] double key_of(std::int32_t link, int column) const;

  std::shared_ptr<const NetworkPicture> picture_;
  LinkEdits edits_;
  std::vector<std::int32_t> rows_;
  int column_ = kShare;
  Qt::SortOrder order_ = Qt::DescendingOrder;
};

}  // namespace cpfit::gui
