// The memory dock: bars per stage, the tree to the tensor, what would free it, and what is assumed.
#pragma once

#include "gui/study/live_estimate.h"
#include "gui/study/selection.h"
#include "gui/view/study_view.h"

class QComboBox;
class QLabel;
class QTableView;
class QTreeView;

namespace cpfit::gui {

class FreeList;
class MemoryTree;
class StageBars;

class MemoryView : public StudyView {
  Q_OBJECT
 public:
  MemoryView(StudyDocument& document, LiveEstimate& live, Selection& selection, QWidget* parent = nullptr);
  [[nodiscard]] QString summary() const override;
  [[nodiscard]] QString csv() const override;
  [[nodiscard]] QString command() const override;
  [[nodiscard]] StageBars* bars() const { return bars_; }
  [[nodiscard]] QTableView* free_table() const { return free_; }
  [[nodiscard]] QComboBox* moments() const { return moment_; }
  /// Shows the peak of the worst stage.
  void go_to_peak();

 private:
  void refresh();
  void refresh_tree();
  void refresh_free();
  void select_tensor();
  StudyDocument& document_;
  LiveEstimate& live_;
  Selection& selection_;
  StageBars* bars_;
  QComboBox* moment_;
  QLabel* headline_;
  QTreeView* tree_;
  MemoryTree* nodes_;
  QTableView* free_;
  FreeList* changes_;
  QLabel* nothing_to_free_;
  QLabel* assumptions_;
  std::int32_t stage_ = 0;
  bool stage_was_chosen_ = false;
};

}  // namespace cpfit::gui
