// The calibration dock: which calibrations are known, how far each of their curves may be trusted, and how predictions agreed
// with measured runs.
#pragma once

#include <memory>
#include <vector>

#include "gui/calibration/fit_measured.h"
#include "gui/calibration/rate_curves.h"
#include "gui/calibration/validation_points.h"
#include "gui/study/jobs.h"
#include "gui/study/opened_database.h"
#include "gui/study/study_document.h"
#include "gui/view/study_view.h"

class QComboBox;
class QCustomPlot;
class QLineEdit;
class QPushButton;
class QTabWidget;
class QTableView;
class QTableWidget;
class QTextBrowser;

namespace cpfit::gui {

class AgreementView;
class MeasurePanel;
class RefitPanel;
class SurfaceCurve;
class SurfaceTable;

class CalibrationView : public StudyView {
  Q_OBJECT
 public:
  CalibrationView(StudyDocument& document, Jobs& jobs, OpenedDatabase& database, QWidget* parent = nullptr);
  [[nodiscard]] QString summary() const override;
  [[nodiscard]] QString csv() const override;
  [[nodiscard]] QString command() const override;
  void paint_on(QPainter& painter) override;
  /// Fits a measurement file and offers its rates.
  void fit_file(const QString& path);
  [[nodiscard]] QTableWidget* calibrations() const { return list_; }
  [[nodiscard]] QPushButton* use_button() const { return use_; }
  [[nodiscard]] QTableView* surfaces() const { return table_; }
  [[nodiscard]] QLineEdit* filter() const { return filter_; }
  [[nodiscard]] QCustomPlot* curve_plot() const;
  [[nodiscard]] QCustomPlot* agreement_plot() const;
  [[nodiscard]] QTabWidget* tabs() const { return tabs_; }
  [[nodiscard]] QComboBox* metrics() const;
  [[nodiscard]] MeasurePanel* measure() const { return measure_; }
  [[nodiscard]] SurfaceCurve* curve() const { return curve_; }
  [[nodiscard]] RefitPanel* refit() const { return refit_; }
  [[nodiscard]] const std::shared_ptr<const KnownCalibration>& shown() const { return shown_; }
  /// The row of the agreement whose mark is nearest to a place in its plot; none within reach.
  [[nodiscard]] const AgreementPoint* agreement_at(const QPointF& at) const;

 signals:
  void said(const QString& sentence, bool trouble);

 private:
  QWidget* build_curves();
  void refresh_list();
  void refresh_use();
  void choose(int row);
  void use();
  void take_fitted(const std::shared_ptr<const ChosenCalibration>& chosen);
  void keep_version(const std::shared_ptr<const KnownCalibration>& version);
  void prefer_surface();
  void show_curve();
  [[nodiscard]] bool is_used(std::size_t row) const;
  [[nodiscard]] std::size_t surface() const;
  StudyDocument& document_;
  Jobs& jobs_;
  OpenedDatabase& database_;
  std::vector<std::shared_ptr<const KnownCalibration>> known_;
  std::vector<std::string> from_;                                 // (known_): database or file; empty: ships with cpfit
  std::vector<std::shared_ptr<const ChosenCalibration>> fitted_;  // here, since the window opened
  std::shared_ptr<const ChosenCalibration> of_study_;             // that the list shows
  std::shared_ptr<const KnownCalibration> shown_;
  QTabWidget* tabs_;
  QTableWidget* list_;
  QPushButton* use_;
  QTextBrowser* provenance_;
  QLineEdit* filter_;
  QTableView* table_;
  SurfaceTable* surfaces_;
  SurfaceCurve* curve_;
  RefitPanel* refit_;
  AgreementView* agreement_;
  MeasurePanel* measure_;
};

}  // namespace cpfit::gui
