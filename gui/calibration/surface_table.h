// The surfaces of a calibration as rows: device, kernel, points, errors on shapes kept out, evidence, range.
#pragma once

#include <QAbstractTableModel>
#include <memory>
#include <vector>

#include "gui/calibration/rate_curves.h"

namespace cpfit::gui {

class SurfaceTable : public QAbstractTableModel {
  Q_OBJECT
 public:
  explicit SurfaceTable(QObject* parent = nullptr) : QAbstractTableModel(parent) {}
  /// Rows whose device and name contain every word of `filter`.
  void show_surfaces(std::shared_ptr<const KnownCalibration> known, const QString& filter);
  [[nodiscard]] std::size_t surface_at(int row) const { return shown_[static_cast<std::size_t>(row)]; }
  [[nodiscard]] int row_of(std::size_t surface) const;  // -1: not shown

  [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
  [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  std::shared_ptr<const KnownCalibration> known_;
  std::vector<std::size_t> shown_;
};

}  // namespace cpfit::gui
