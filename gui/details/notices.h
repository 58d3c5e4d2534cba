// Everything that is wrong or doubtful about a design, as rows: rules broken, warnings, notes. Pure, and a model.
#pragma once

#include <QAbstractTableModel>
#include <QString>
#include <string>
#include <vector>

#include "gui/study/live_estimate.h"

namespace cpfit::gui {

enum class Severity : std::uint8_t { kError, kWarning, kNote };

struct Notice {
  Severity severity = Severity::kNote;
  QString what, repair;
  std::string row;  // the recipe row it is about; empty: none
};

/// Errors first. `trouble`: of the simulation, may be empty.
[[nodiscard]] std::vector<Notice> notices_of(const Estimate& estimate, const QString& trouble);

class NoticeTable : public QAbstractTableModel {
  Q_OBJECT
 public:
  explicit NoticeTable(QObject* parent = nullptr) : QAbstractTableModel(parent) {}
  void set_notices(std::vector<Notice> notices);
  [[nodiscard]] const std::vector<Notice>& notices() const { return notices_; }
  [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
  [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  std::vector<Notice> notices_;
};

}  // namespace cpfit::gui
