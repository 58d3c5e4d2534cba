// The Details dock: follows the selection. "Why?" unfolds the arithmetic.
#pragma once

#include <functional>

#include "gui/study/live_estimate.h"
#include "gui/study/selection.h"
#include "gui/view/study_view.h"

class QTextBrowser;
class QToolButton;

namespace cpfit::gui {

class DetailsView : public StudyView {
  Q_OBJECT
 public:
  DetailsView(StudyDocument& document, LiveEstimate& live, Selection& selection, QWidget* parent = nullptr);
  [[nodiscard]] QString summary() const override;
  [[nodiscard]] QString command() const override;
  [[nodiscard]] QTextBrowser* text() const { return text_; }
  /// What the timeline says of the selected span.
  void set_span_text(std::function<QString(const SelectedSpan&)> text) { span_text_ = std::move(text); }
  /// What the results say of the chosen row.
  void set_result_text(std::function<QString(std::int64_t)> text) { result_text_ = std::move(text); }

 private:
  void refresh();
  StudyDocument& document_;
  LiveEstimate& live_;
  Selection& selection_;
  QTextBrowser* text_;
  QToolButton* why_;
  std::function<QString(const SelectedSpan&)> span_text_;
  std::function<QString(std::int64_t)> result_text_;
};

}  // namespace cpfit::gui
