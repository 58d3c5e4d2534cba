// Predicted against measured: the rows of stored validations by metric, and how well they agree. Pure.
#pragma once

#include <QString>
#include <vector>

#include "gui/study/opened_database.h"

namespace cpfit::gui {

struct AgreementPoint {
  QString file, label, group;
  std::int64_t line = 0;
  double measured = 0, predicted = 0, low = 0, high = 0;  // in the metric's unit
  bool searched = false;                                  // some input was found by search
};

struct Agreement {
  Metric metric = Metric::kStepSeconds;
  std::vector<AgreementPoint> points;
  double median_error = 0, worst_error = 0, bias = 0, coverage = 0;  // fractions; of all points
};
/// One per metric that has a row, in the order of Metric. Of a table that was validated more than once the youngest counts.
[[nodiscard]] std::vector<Agreement> agreements(const std::vector<StoredValidation>& validations);

/// "Step time, s".
[[nodiscard]] QString metric_label(Metric metric);
/// "Of 412 rows half are within 4.1 %, …".
[[nodiscard]] QString agreement_sentence(const Agreement& agreement);

}  // namespace cpfit::gui
