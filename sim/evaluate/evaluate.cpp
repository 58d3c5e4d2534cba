#include "sim/evaluate/evaluate.h"

#include <algorithm>

#include "model/rates/dense_peak.h"
#include "sim/evaluate/predict_kernel.h"
#include "sim/evaluate/predict_run.h"
#include "sim/evaluate/score.h"

namespace cpfit {

namespace {

bool exceeds_peak(const MeasuredRun& run) {
  const double peak = dense_peak(run.scenario.cluster.gpu, run.scenario.base.precision).value();
  return std::any_of(run.measured.begin(), run.measured.end(),
                     [&](const auto& figure) { return implied_flops_per_second(run, figure.first, figure.second) > peak; });
}

ValidationRow row_of(std::int64_t line, const std::string& label, const std::string& group, Metric metric, double measured,
                     const Predicted& predicted) {
  ValidationRow row{};
  row.line = line;
  row.label = label;
  row.metric = metric;
  row.measured = measured;
  row.predicted = predicted.value;
  row.low = predicted.low;
  row.high = predicted.high;
  row.error = predicted.value / measured - 1;
  row.group = group;
  return row;
}

void evaluate_run(const MeasuredRun& run, Predictor& predictor, const RunSeen& seen, ValidationResult& result) {
  if (exceeds_peak(run)) {
    result.skipped.push_back({run.line, "exceeds peak"});
    return;
  }
  auto outcome = predict(run, predictor);
  if (auto* reason = std::get_if<Unpredictable>(&outcome)) {
    result.skipped.push_back({run.line, std::move(reason->reason)});
    return;
  }
  const auto& prediction = std::get<RunPrediction>(outcome);
  if (seen) seen(run, prediction.candidate);
  for (const auto& [metric, measured] : run.measured) {
    if (measured <= 0) continue;
    ValidationRow row = row_of(run.line, run.label, run.group, metric, measured, predicted_metric(run, prediction, metric));
    row.searched = prediction.searched;
    result.rows.push_back(std::move(row));
  }
  if (run.died) {
    if (!result.out_of_memory) result.out_of_memory.emplace();
    count_verdict(*result.out_of_memory, *run.died, prediction.candidate.verdict.fit);
  }
}

void evaluate_kernel(const MeasuredKernel& kernel, Predictor& predictor, ValidationResult& result) {
  auto outcome = predict(kernel, predictor);
  if (auto* reason = std::get_if<Unpredictable>(&outcome)) {
    result.skipped.push_back({kernel.line, std::move(reason->reason)});
    return;
  }
  const Metric metric = kernel.kind == KernelKind::kCollective ? Metric::kCollectiveSeconds : Metric::kKernelSeconds;
  ValidationRow row = row_of(kernel.line, kernel.label, kernel.group, metric, kernel.seconds, std::get<Predicted>(outcome));
  row.searched = kernel.supposed;
  result.rows.push_back(std::move(row));
}

}  // namespace

ValidationResult evaluate(const MeasuredTable& table, const RateSet& rates, const RunSeen& seen) {
  ValidationResult result;
  result.path = table.path;
  result.skipped = table.skipped;
  Predictor predictor(rates);
  for (const MeasuredRun& run : table.runs) evaluate_run(run, predictor, seen, result);
  for (const MeasuredKernel& kernel : table.kernels) evaluate_kernel(kernel, predictor, result);
  const auto by_line = [](const auto& a, const auto& b) { return a.line < b.line; };
  std::stable_sort(result.rows.begin(), result.rows.end(), by_line);
  std::stable_sort(result.skipped.begin(), result.skipped.end(), by_line);
  result.summary = summarize(result.rows);
  result.groups = summarize_groups(result.rows);
  // A table in which every run lived says nothing about the verdict on runs that would have died.
  const bool some_died =
      std::any_of(table.runs.begin(), table.runs.end(), [](const MeasuredRun& run) { return run.died.value_or(false); });
  if (!some_died) result.out_of_memory.reset();
  return result;
}

}  // namespace cpfit
