// The page that measures this machine: what with, how much, where to; progress, stop, and the fit of what came of it.
#pragma once

#include <QWidget>

#include "gui/calibration/bench_run.h"
#include "gui/calibration/fit_measured.h"

class QComboBox;
class QDoubleSpinBox;
class QLabel;
class QLineEdit;
class QProgressBar;
class QPushButton;
class QSpinBox;

namespace cpfit::gui {

class MeasurePanel : public QWidget {
  Q_OBJECT
 public:
  explicit MeasurePanel(Jobs& jobs, QWidget* parent = nullptr);

  /// Fits a file that is there already, and offers it like one that was measured here.
  void fit_file(const QString& path);
  [[nodiscard]] BenchCommand command() const;
  [[nodiscard]] QString summary() const;
  [[nodiscard]] BenchRun& run() { return *run_; }
  [[nodiscard]] QLineEdit* program() const { return program_; }
  [[nodiscard]] QLineEdit* out() const { return out_; }
  [[nodiscard]] QComboBox* backend() const { return backend_; }
  [[nodiscard]] QComboBox* amount() const { return amount_; }
  [[nodiscard]] QPushButton* start_button() const { return start_; }
  [[nodiscard]] QPushButton* stop_button() const { return stop_; }
  [[nodiscard]] QPushButton* fit_button() const { return fit_; }
  [[nodiscard]] QLabel* sentence() const { return sentence_; }

 signals:
  void fitted(const std::shared_ptr<const cpfit::gui::ChosenCalibration>& chosen);
  void changed();

 private:
  void propose_file();
  void refresh();
  Jobs& jobs_;
  BenchRun* run_;
  QString proposed_, remarks_, fit_trouble_;
  QLineEdit* program_;
  QComboBox* backend_;
  QSpinBox* ranks_;
  QComboBox* amount_;
  QDoubleSpinBox* minutes_;
  QLineEdit* out_;
  QLabel* command_;
  QPushButton* start_;
  QPushButton* stop_;
  QPushButton* fit_;
  QProgressBar* bar_;
  QLabel* sentence_;
};

}  // namespace cpfit::gui
