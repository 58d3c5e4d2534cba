#include "sim/evaluate/ring_validation.h"

#include <algorithm>

#include "sim/evaluate/score.h"
#include "sim/screen/composition.h"

namespace cpfit {

namespace {

double value_of(const MeasuredPoint& point, const char* name) {
  const MeasuredResult* result = point.result(name);
  return result == nullptr ? 0 : result->median;
}

}  // namespace

std::array<ValidationRow, 2> ring_rows(const MeasuredPoint& point, const RingStepPrediction& predicted, std::int64_t line,
                                       const std::string& group) {
  ValidationRow step;
  step.line = line;
  step.label = axes_text(point.axes);
  step.metric = Metric::kStepSeconds;
  step.measured = value_of(point, "seconds");
  step.predicted = predicted.seconds;
  const double width = 1 + kNinetyPercent * predicted.relative_sigma;
  step.low = predicted.seconds / width;
  step.high = predicted.seconds * width;
  step.error = predicted.seconds / step.measured - 1;
  step.group = group;
  ValidationRow exposed = step;
  exposed.metric = Metric::kExposedSeconds;
  exposed.measured = value_of(point, "exposed_seconds");
  exposed.predicted = predicted.exposed_seconds;
  exposed.low = std::max(0.0, predicted.exposed_seconds - (predicted.seconds - step.low));
  exposed.high = predicted.exposed_seconds + (step.high - predicted.seconds);
  exposed.error = (exposed.predicted - exposed.measured) / step.measured;
  return {std::move(step), std::move(exposed)};
}

ValidationResult evaluate_ring_steps(const MeasurementFile& file, const std::string& path, const Outcome<RingRates>& rates) {
  ValidationResult result;
  result.path = path;
  std::int64_t line = 0;
  for (const MeasuredPoint& point : file.points) {
    ++line;
    if (point.probe != "ring_step" || point.outcome != MeasuredOutcome::kMeasured || !(value_of(point, "seconds") > 0)) continue;
    const Outcome<RingStepPrediction> predicted =
        rates.ok() ? predict_ring_step(*rates, point) : Outcome<RingStepPrediction>(rates.problems());
    if (!predicted.ok()) {
      result.skipped.push_back({line, predicted.problems().front().message});
      continue;
    }
    for (ValidationRow& row : ring_rows(point, *predicted, line, point.text("method") + " " + point.text("pass")))
      result.rows.push_back(std::move(row));
  }
  result.summary = summarize(result.rows);
  result.groups = summarize_groups(result.rows);
  return result;
}

}  // namespace cpfit
