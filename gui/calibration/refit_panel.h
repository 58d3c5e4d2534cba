// Beneath a curve: the chosen point, why it should not count, the fit without the points left out, beside the fit before, and a
// new version of the calibration. Nothing is stored before a person says so, and nothing that was marked is lost when another
// calibration is looked at.
#pragma once

#include <QWidget>
#include <functional>
#include <map>
#include <memory>

#include "gui/calibration/exclusions.h"
#include "gui/study/design.h"
#include "gui/study/jobs.h"

class QComboBox;
class QLabel;
class QMenu;
class QPushButton;

namespace cpfit::gui {

class SurfaceCurve;

class RefitPanel : public QWidget {
  Q_OBJECT
 public:
  /// Draws its marks into `curve`, and answers its clicks and keys.
  RefitPanel(Jobs& jobs, SurfaceCurve& curve, QWidget* parent = nullptr);
  void show_surface(std::shared_ptr<const KnownCalibration> known, std::size_t surface);

  /// What the next fit of the shown calibration leaves out.
  [[nodiscard]] const std::vector<ExcludedPoint>& planned() const;
  [[nodiscard]] const std::shared_ptr<const KnownCalibration>& refit() const { return refit_; }
  [[nodiscard]] std::optional<std::size_t> chosen() const { return chosen_; }
  void choose(std::optional<std::size_t> point);
  /// Leaves the chosen point out for the reason in the field, or counts it again.
  void toggle();
  void set_left_out(std::size_t point, const QString& reason);  // empty: it counts again
  /// What can be done with a point.
  [[nodiscard]] std::unique_ptr<QMenu> menu_of(std::size_t point);

  [[nodiscard]] QComboBox* reason() const { return reason_; }
  [[nodiscard]] QPushButton* toggle_button() const { return toggle_; }
  [[nodiscard]] QPushButton* fit_button() const { return fit_; }
  [[nodiscard]] QPushButton* store_button() const { return store_; }
  [[nodiscard]] QString sentence() const;

 signals:
  /// A person wants the new version kept.
  void made(const std::shared_ptr<const cpfit::gui::KnownCalibration>& version);

 private:
  [[nodiscard]] bool is_left_out(std::size_t point) const;
  [[nodiscard]] bool is_changed() const;
  void fit();
  void refresh();
  void step(int by);
  Jobs& jobs_;
  SurfaceCurve& curve_;
  std::shared_ptr<const KnownCalibration> known_;
  std::size_t surface_ = 0;
  std::optional<std::size_t> chosen_;
  std::map<std::string, std::vector<ExcludedPoint>> planned_;  // by the calibration's id
  std::shared_ptr<const KnownCalibration> refit_;              // of known_ without planned()
  QStringList remarks_;                                        // of the refit
  QString trouble_;
  QLabel* point_;
  QComboBox* reason_;
  QPushButton* toggle_;
  QPushButton* fit_;
  QPushButton* store_;
  QLabel* changes_;
};

}  // namespace cpfit::gui
