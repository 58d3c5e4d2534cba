// The Problems dock: rows of notices; Enter or a double-click goes to the recipe row.
#pragma once

#include "gui/study/live_estimate.h"
#include "gui/study/selection.h"
#include "gui/view/study_view.h"

class QLabel;
class QTableView;

namespace cpfit::gui {

class NoticeTable;

class NoticeView : public StudyView {
  Q_OBJECT
 public:
  NoticeView(StudyDocument& document, LiveEstimate& live, Selection& selection, QWidget* parent = nullptr);
  [[nodiscard]] QString summary() const override;
  [[nodiscard]] QString csv() const override;
  [[nodiscard]] QTableView* table() const { return table_; }
  [[nodiscard]] int errors() const;

 private:
  void refresh();
  StudyDocument& document_;
  LiveEstimate& live_;
  NoticeTable* notices_;
  QTableView* table_;
  QLabel* none_;
};

}  // namespace cpfit::gui
