// The rows that pass the filter as a model, in an order of its own: no proxy between 100,000 rows and their table.
#pragma once

#include <QAbstractTableModel>
#include <memory>
#include <vector>

#include "gui/results/result_book.h"

namespace cpfit::gui {

class ResultTable : public QAbstractTableModel {
  Q_OBJECT
 public:
  explicit ResultTable(ResultBook& book, QObject* parent = nullptr);

  [[nodiscard]] const std::vector<std::size_t>& columns() const { return columns_; }  // fields; "why" comes last
  void set_columns(std::vector<std::size_t> columns);
  /// The columns a person sees first.
  [[nodiscard]] static std::vector<std::size_t> usual_columns();

  [[nodiscard]] const std::vector<SortKey>& keys() const { return keys_; }
  void set_keys(std::vector<SortKey> keys);
  void sort(int column, Qt::SortOrder order) override;

  [[nodiscard]] const std::vector<std::uint32_t>& order() const { return order_; }
  /// Row of the set shown in a line of the table, and back; -1: filtered out.
  [[nodiscard]] std::uint32_t row_at(int line) const { return order_[static_cast<std::size_t>(line)]; }
  [[nodiscard]] int line_of(std::uint32_t row) const;

  [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
  [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

  /// What is shown, whole, with units, and each recipe in full.
  [[nodiscard]] QString csv() const;
  /// The marks of A and B changed.
  void marks_changed();

 private:
  void refill();
  ResultBook& book_;
  std::shared_ptr<const ResultSet> set_;  // that order_ and lines_ are of
  std::vector<std::size_t> columns_;
  std::vector<SortKey> keys_;
  std::vector<std::uint32_t> order_;
  std::vector<std::int32_t> lines_;  // (rows of the set)
};

}  // namespace cpfit::gui
