// Predictions against measured runs: every row of the open database's validations, one figure at a time.
#pragma once

#include <QWidget>
#include <memory>
#include <vector>

#include "gui/calibration/validation_points.h"
#include "gui/study/opened_database.h"

class QComboBox;
class QCustomPlot;
class QLabel;

namespace cpfit::gui {

class AgreementView : public QWidget {
  Q_OBJECT
 public:
  explicit AgreementView(QWidget* parent = nullptr);
  /// Null: no database is open.
  void show_content(const std::shared_ptr<const DatabaseContent>& content);
  [[nodiscard]] QString sentence() const;
  [[nodiscard]] QString csv() const;
  [[nodiscard]] QComboBox* metrics() const { return metrics_; }
  [[nodiscard]] QCustomPlot* plot() const { return scatter_; }
  /// The row whose mark is nearest to a place in the plot; none within reach.
  [[nodiscard]] const AgreementPoint* point_at(const QPointF& at) const;

 signals:
  void changed();

 protected:
  void changeEvent(QEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void draw();
  std::vector<Agreement> agreements_;
  QString why_none_;
  QComboBox* metrics_;
  QLabel* sentence_;
  QCustomPlot* scatter_;
};

}  // namespace cpfit::gui
