// One surface of a calibration as a picture: the fitted curve with its interval and range, measured points (hollow: left out of
// the fit), residuals beneath, a newer fit beside it, and how far to trust it in words. Points are chosen by a click or the
// arrows; what is done with them is decided elsewhere.
#pragma once

#include <QWidget>
#include <memory>
#include <optional>
#include <vector>

#include "gui/calibration/rate_curves.h"

class QCPAxisRect;
class QCPGraph;
class QCustomPlot;
class QLabel;

namespace cpfit::gui {

class SurfaceCurve : public QWidget {
  Q_OBJECT
 public:
  explicit SurfaceCurve(QWidget* parent = nullptr);
  /// A surface that the calibration does not have is said.
  void show_surface(std::shared_ptr<const KnownCalibration> known, std::size_t surface);
  /// By index of the calibration's points: those that the next fit leaves out (empty: those this fit left out), the chosen one;
  /// and a newer fit to draw beside.
  void set_marks(std::vector<char> left_out, std::optional<std::size_t> chosen, std::shared_ptr<const KnownCalibration> beside);
  void focus_plot();
  [[nodiscard]] QString headline() const;
  /// The point of the surface whose mark is nearest to a place in the plot; none within reach.
  [[nodiscard]] std::optional<std::size_t> point_at(const QPointF& at) const;
  /// Where a point's mark stands in the plot.
  [[nodiscard]] QPointF place_of(std::size_t point) const;
  [[nodiscard]] QCustomPlot* plot() const { return curve_; }

 signals:
  void point_clicked(std::size_t point);
  void step_wanted(int by);
  void toggle_wanted();
  void menu_wanted(const QPoint& global);

 protected:
  void changeEvent(QEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void draw();
  void draw_points(double& top, double& left, double& right);
  void draw_beside(double& top);
  void draw_residuals(QCPAxisRect& rect);
  void add_marks(QCPAxisRect& rect, bool residuals);
  [[nodiscard]] bool is_left_out(std::size_t point) const;
  [[nodiscard]] bool has_points() const;
  bool on_key(int key);
  bool on_click(const QPointF& at);
  std::shared_ptr<const KnownCalibration> known_;
  std::size_t at_ = 0;
  std::vector<char> left_out_;
  std::optional<std::size_t> chosen_;
  std::shared_ptr<const KnownCalibration> beside_;
  QLabel* headline_;
  QCustomPlot* curve_;
};

}  // namespace cpfit::gui
