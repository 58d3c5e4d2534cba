// The Jobs dock: what runs beside the window and what came of it; the chosen one can be stopped.
#pragma once

#include "gui/study/jobs.h"
#include "gui/view/study_view.h"

class QPushButton;
class QTableView;

namespace cpfit::gui {

class JobView : public StudyView {
  Q_OBJECT
 public:
  explicit JobView(Jobs& jobs, QWidget* parent = nullptr);
  [[nodiscard]] QString summary() const override;
  [[nodiscard]] QString csv() const override;
  [[nodiscard]] QPushButton* stop_button() const { return stop_; }

 private:
  void refresh();
  Jobs& jobs_;
  QTableView* table_;
  QPushButton* stop_;
};

}  // namespace cpfit::gui
