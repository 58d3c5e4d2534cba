// Memory by sequence length: the current degree stacked by component with its forward and backward peaks, other degrees overlaid,
// capacity and margin, the crossover marked. Ctrl+wheel or W S zoom, drag pans, Home fits, a click takes the length.
#pragma once

#include "gui/study/live_estimate.h"
#include "gui/view/study_view.h"

class QCustomPlot;
class QLabel;

namespace cpfit::gui {

class LengthCurve : public StudyView {
  Q_OBJECT
 public:
  LengthCurve(StudyDocument& document, LiveEstimate& live, QWidget* parent = nullptr);
  [[nodiscard]] QString summary() const override;
  [[nodiscard]] QString csv() const override;
  [[nodiscard]] QString command() const override;
  [[nodiscard]] QCustomPlot* plot() const { return plot_; }
  void paint_on(QPainter& painter) override;
  void fit();

 protected:
  void changeEvent(QEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void redraw();
  void draw_stack();
  void draw_degrees();
  void draw_lines();
  void zoom(double factor, double around);
  [[nodiscard]] bool has_sweep() const { return live_.sweep() != nullptr && document_.is_open(); }
  StudyDocument& document_;
  LiveEstimate& live_;
  QLabel* headline_;
  QLabel* held_;
  QCustomPlot* plot_;
  bool fitted_ = false;
};

}  // namespace cpfit::gui
