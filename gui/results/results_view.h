// The results dock: what the search or a stored run found, as table, as speed against memory, and as parallel axes, under one
// filter. A row chosen anywhere is chosen everywhere; a double click or Enter makes its recipe the study's.
#pragma once

#include "gui/results/result_book.h"
#include "gui/view/study_view.h"

class QComboBox;
class QLabel;
class QSplitter;
class QStackedWidget;
class QTableView;
class QToolButton;

namespace cpfit::gui {

class FilterBar;
class FrozenColumns;
class ParallelPlot;
class ParetoPlot;
class ResultTable;
class RecipeSweep;
class SweepDialog;

class ResultsView : public StudyView {
  Q_OBJECT
 public:
  ResultsView(StudyDocument& document, LiveEstimate& live, Jobs& jobs, OpenedDatabase& database, Selection& selection,
              QWidget* parent = nullptr);
  [[nodiscard]] QString summary() const override;
  [[nodiscard]] QString csv() const override;
  [[nodiscard]] QString command() const override;
  void paint_on(QPainter& painter) override;
  [[nodiscard]] ResultBook& book() { return *book_; }
  [[nodiscard]] FilterBar* filter_bar() const { return bar_; }
  [[nodiscard]] QTableView* table() const { return table_; }
  [[nodiscard]] ResultTable* rows() const { return rows_; }
  [[nodiscard]] FrozenColumns* frozen() const { return frozen_; }
  [[nodiscard]] ParetoPlot* pareto() const { return pareto_; }
  [[nodiscard]] ParallelPlot* parallel() const { return parallel_; }
  [[nodiscard]] QComboBox* speeds() const { return speeds_; }
  [[nodiscard]] RecipeSweep& sweep() { return *sweep_; }
  /// The dialog that chooses and starts a sweep, made when it is first asked for.
  SweepDialog* open_sweep();

 signals:
  void said(const QString& sentence, bool trouble);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void build_columns_menu();
  void fit_columns();
  void refresh();
  void follow_selection();
  void sort_by(int section);
  void show_swept();
  StudyDocument& document_;
  LiveEstimate& live_;
  Jobs& jobs_;
  OpenedDatabase& database_;
  Selection& selection_;
  ResultBook* book_;
  FilterBar* bar_;
  QToolButton* columns_;
  QComboBox* speeds_;
  QComboBox* colors_;
  ParetoPlot* pareto_;
  ParallelPlot* parallel_;
  ResultTable* rows_;
  FrozenColumns* frozen_ = nullptr;
  QTableView* table_;
  QLabel* sentence_;
  QLabel* empty_;
  QSplitter* split_;
  RecipeSweep* sweep_;
  SweepDialog* sweep_dialog_ = nullptr;
  bool following_ = false;
};

}  // namespace cpfit::gui
