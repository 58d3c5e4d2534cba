// The equivalence dock: what was last verified of the recipe's attention, per case and tensor, with the planted faults that had
// to be caught.
#pragma once

#include <QAbstractTableModel>
#include <vector>

#include "gui/equivalence/verified_rows.h"
#include "gui/study/opened_database.h"
#include "gui/study/study_document.h"
#include "gui/view/study_view.h"

class QCheckBox;
class QComboBox;
class QLabel;
class QLineEdit;
class QSplitter;
class QTableView;
class QTableWidget;

namespace cpfit::gui {

/// Cases of a verification in the order of case_rows; the verification must outlive what is shown of it.
class CaseTable : public QAbstractTableModel {
  Q_OBJECT
 public:
  explicit CaseTable(QObject* parent = nullptr) : QAbstractTableModel(parent) {}
  void show_cases(const Verification* verification, std::vector<std::size_t> rows);
  [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
  [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  const Verification* verification_ = nullptr;
  std::vector<std::size_t> rows_;
};

class EquivalenceView : public StudyView {
  Q_OBJECT
 public:
  EquivalenceView(StudyDocument& document, OpenedDatabase& database, QWidget* parent = nullptr);
  [[nodiscard]] QString summary() const override;
  [[nodiscard]] QString csv() const override;
  [[nodiscard]] QString command() const override;
  [[nodiscard]] QTableView* cases() const { return table_; }
  [[nodiscard]] QTableWidget* controls() const { return controls_; }
  [[nodiscard]] QCheckBox* only_recipe() const { return only_; }
  [[nodiscard]] QLineEdit* filter() const { return filter_; }
  [[nodiscard]] QComboBox* runs() const { return runs_; }

 private:
  void refresh_runs();
  void refresh();
  [[nodiscard]] const StoredVerification* shown() const;
  [[nodiscard]] CaseFilter filter_now() const;
  StudyDocument& document_;
  OpenedDatabase& database_;
  std::shared_ptr<const DatabaseContent> content_;  // what the table refers to
  QComboBox* runs_;
  QCheckBox* only_;
  QLineEdit* filter_;
  QLabel* headline_;
  QTableView* table_;
  CaseTable* rows_;
  QTableWidget* controls_;
  QLabel* controls_title_;
  QLabel* empty_;
  QSplitter* split_;
};

}  // namespace cpfit::gui
