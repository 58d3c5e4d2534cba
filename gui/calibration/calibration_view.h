// The calibration dock: which calibrations are known, how far each of their curves may be trusted, and how predictions agreed
// with measured runs.
#pragma once

#include <memory>
#include <vector>

#include "gui/calibration/rate_curves.h"
#include "gui/calibration/validation_points.h"
#include "gui/study/jobs.h"
#include "gui/study/opened_database.h"
#include "gui/study/study_document.h"
#include "gui/view/study_view.h"

class QComboBox;
class QCPAxisRect;
class QCustomPlot;
class QLabel;
class QLineEdit;
class QTabWidget;
class QTableView;
class QTableWidget;
class QTextBrowser;

namespace cpfit::gui {

class SurfaceTable;

class CalibrationView : public StudyView {
  Q_OBJECT
 public:
  CalibrationView(StudyDocument& document, Jobs& jobs, OpenedDatabase& database, QWidget* parent = nullptr);
  [[nodiscard]] QString summary() const override;
  [[nodiscard]] QString csv() const override;
  [[nodiscard]] QString command() const override;
  void paint_on(QPainter& painter) override;
  [[nodiscard]] QTableWidget* calibrations() const { return list_; }
  [[nodiscard]] QTableView* surfaces() const { return table_; }
  [[nodiscard]] QLineEdit* filter() const { return filter_; }
  [[nodiscard]] QCustomPlot* curve_plot() const { return curve_; }
  [[nodiscard]] QCustomPlot* agreement_plot() const { return scatter_; }
  [[nodiscard]] QTabWidget* tabs() const { return tabs_; }
  [[nodiscard]] QComboBox* metrics() const { return metrics_; }
  [[nodiscard]] const std::shared_ptr<const KnownCalibration>& shown() const { return shown_; }
  /// The row of the agreement whose mark is nearest to a place in its plot; none within reach.
  [[nodiscard]] const AgreementPoint* agreement_at(const QPointF& at) const;

 protected:
  void changeEvent(QEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  QWidget* build_curves();
  QWidget* build_agreement();
  void refresh_list();
  void choose(int row);
  void choose_surface();
  void prefer_surface();
  void draw_curve();
  void draw_residuals(std::size_t surface, QCPAxisRect& rect);
  void refresh_agreement();
  void draw_agreement();
  [[nodiscard]] std::size_t surface() const;
  StudyDocument& document_;
  Jobs& jobs_;
  OpenedDatabase& database_;
  std::vector<std::shared_ptr<const KnownCalibration>> known_;
  std::shared_ptr<const KnownCalibration> shown_;
  std::vector<Agreement> agreements_;
  QTabWidget* tabs_;
  QTableWidget* list_;
  QTextBrowser* provenance_;
  QLineEdit* filter_;
  QTableView* table_;
  SurfaceTable* surfaces_;
  QLabel* headline_;
  QCustomPlot* curve_;
  QComboBox* metrics_;
  QLabel* agreement_;
  QCustomPlot* scatter_;
};

}  // namespace cpfit::gui
