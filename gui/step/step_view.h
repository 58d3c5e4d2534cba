// The step of the study on the timeline: feeds the timeline widget from the live simulation, and its choices into the selection.
#pragma once

#include <memory>

#include "gui/study/live_estimate.h"
#include "gui/study/selection.h"
#include "gui/view/study_view.h"

namespace cpfit::gui {

class TimelineView;
struct StepPicture;
struct StepTracks;

class StepView : public StudyView {
  Q_OBJECT
 public:
  StepView(StudyDocument& document, LiveEstimate& live, Jobs& jobs, Selection& selection, QWidget* parent = nullptr);
  [[nodiscard]] QString summary() const override;
  [[nodiscard]] QString csv() const override;
  [[nodiscard]] QString command() const override;
  [[nodiscard]] TimelineView* timeline() const { return timeline_; }
  /// What the timeline says of the selected span; empty: none.
  [[nodiscard]] QString span_text() const;
  /// Overlays one step of a real trace. Throws Error when it cannot be read; a sentence otherwise.
  QString overlay_trace(const QString& path);

 private:
  void refresh();
  void build_picture();
  void take_selection(const QObject* origin);
  StudyDocument& document_;
  LiveEstimate& live_;
  Jobs& jobs_;
  Selection& selection_;
  TimelineView* timeline_;
  std::shared_ptr<const SimulatedStep> shown_;  // what the picture is of, or is being made of
};

}  // namespace cpfit::gui
