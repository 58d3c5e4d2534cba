// One surface of a calibration as a picture: the fitted curve with its interval and range, measured points, residuals beneath,
// and how far to trust it in words.
#pragma once

#include <QWidget>
#include <memory>

#include "gui/calibration/rate_curves.h"

class QCPAxisRect;
class QCustomPlot;
class QLabel;

namespace cpfit::gui {

class SurfaceCurve : public QWidget {
  Q_OBJECT
 public:
  explicit SurfaceCurve(QWidget* parent = nullptr);
  /// A surface that the calibration does not have is said.
  void show_surface(std::shared_ptr<const KnownCalibration> known, std::size_t surface);
  [[nodiscard]] QString headline() const;
  [[nodiscard]] QCustomPlot* plot() const { return curve_; }

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void draw();
  void draw_residuals(QCPAxisRect& rect);
  std::shared_ptr<const KnownCalibration> known_;
  std::size_t at_ = 0;
  QLabel* headline_;
  QCustomPlot* curve_;
};

}  // namespace cpfit::gui
