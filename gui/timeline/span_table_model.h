// The spans of the timeline's window as rows: "show as table". Rows are found on demand from the lanes, nothing is copied;
// sorting keeps an order of indices.
#pragma once

#include <QAbstractTableModel>
#include <memory>
#include <vector>

#include "gui/timeline/timeline_hit.h"

namespace cpfit::gui {

class SpanTableModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Column { kRank, kLane, kWhat, kPass, kLayer, kMicroBatch, kStart, kTime, kExposed, kBytes, kPeer, kColumns };
  using QAbstractTableModel::QAbstractTableModel;

  /// Spans of these lanes that touch the window.
  void show(std::shared_ptr<const StepPicture> picture, const std::vector<std::int32_t>& lanes, TimeWindow window);
  [[nodiscard]] SpanRef spanOf(int row) const;
  [[nodiscard]] int rowOf(SpanRef span) const;  // -1: not among them

  [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
  [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
  void sort(int column, Qt::SortOrder order) override;

 private:
  struct Part {
    std::int32_t lane;
    std::size_t first, count;
    std::size_t before;  // rows in earlier parts
  };
  [[nodiscard]] SpanRef unsorted(std::size_t row) const;
  [[nodiscard]] double key_of(SpanRef span, int column) const;

  std::shared_ptr<const StepPicture> picture_;
  std::vector<Part> parts_;
  std::vector<std::uint32_t> order_;  // empty: as they come
  std::size_t rows_ = 0;
};

}  // namespace cpfit::gui
