#include "gui/calibration/validation_points.h"

#include <QCoreApplication>
#include <QFileInfo>
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "gui/look/figures.h"

namespace cpfit::gui {

namespace {

double median_of_values(std::vector<double> values) {
  if (values.empty()) return 0.0;
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2.0;
}

}  // namespace

std::vector<Agreement> agreements(const std::vector<StoredValidation>& validations) {
  std::map<Metric, Agreement> found;
  std::set<QString> seen;  // the list is youngest first
  for (const StoredValidation& validation : validations) {
    const QString path = text_of(validation.result.path);
    if (!seen.insert(path).second) continue;
    for (const ValidationRow& row : validation.result.rows) {
      if (!(row.measured > 0.0) || !(row.predicted > 0.0)) continue;
      Agreement& agreement = found[row.metric];
      agreement.metric = row.metric;
      agreement.points.push_back({QFileInfo(path).fileName(), text_of(row.label), text_of(row.group), row.line, row.measured,
                                  row.predicted, row.low, row.high, !row.searched.empty()});
    }
  }
  std::vector<Agreement> all;
  for (auto& [metric, agreement] : found) {
    std::vector<double> errors, signed_errors;
    std::int64_t inside = 0;
    for (const AgreementPoint& point : agreement.points) {
      const double error = point.predicted / point.measured - 1.0;
      signed_errors.push_back(error);
      errors.push_back(std::abs(error));
      inside += point.measured >= point.low && point.measured <= point.high ? 1 : 0;
    }
    agreement.median_error = median_of_values(errors);
    agreement.worst_error = *std::ranges::max_element(errors);
    agreement.bias = median_of_values(signed_errors);
    agreement.coverage = static_cast<double>(inside) / static_cast<double>(agreement.points.size());
    all.push_back(std::move(agreement));
  }
  return all;
}

QString metric_label(Metric metric) {
  const auto text = [](const char* label) { return QCoreApplication::translate("Calibration", label); };
  switch (metric) {
    case Metric::kStepSeconds:
      return text("Step time, s");
    case Metric::kTokensPerSecondPerGpu:
      return text("Tokens per second and GPU");
    case Metric::kTflopsPerGpu:
      return text("TFLOP/s per GPU");
    case Metric::kMfu:
      return text("MFU, share");
    case Metric::kPeakBytes:
      return text("Peak memory, bytes");
    case Metric::kResidentBytes:
      return text("Resident memory, bytes");
    case Metric::kReservedBytes:
      return text("Reserved memory, bytes");
    case Metric::kKernelSeconds:
      return text("Kernel time, s");
    case Metric::kExposedSeconds:
      return text("Exposed messages of a ring step, s");
    case Metric::kCollectiveSeconds:
      break;
  }
  return text("Collective time, s");
}

QString agreement_sentence(const Agreement& agreement) {
  return QCoreApplication::translate("Calibration",
                                     "%1 rows: half are within %2, the worst is off by %3; the median row is predicted %4; %5 of "
                                     "the measured values lie in "
                                     "their interval.")
      .arg(count_text(static_cast<std::int64_t>(agreement.points.size())), share_text(agreement.median_error),
           share_text(agreement.worst_error), signed_share(agreement.bias), share_text(agreement.coverage));
}

}  // namespace cpfit::gui
