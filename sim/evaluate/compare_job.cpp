#include "sim/evaluate/compare_job.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "model/rates/dense_peak.h"
#include "model/transformer/flops.h"
#include "sim/evaluate/predict_run.h"
#include "sim/screen/composition.h"

namespace cpfit {

namespace {

struct CountedFlops {
  FlopsConvention convention;
  std::string words;
};

const MeasuredFigure* figure_in(const JobCase& job, RunFigure figure) {
  const auto found =
      std::find_if(job.figures.begin(), job.figures.end(), [&](const MeasuredFigure& f) { return f.figure == figure; });
  return found == job.figures.end() ? nullptr : &*found;
}

double tokens_per_second_per_gpu(const JobCase& job) {
  if (const MeasuredFigure* tokens = figure_in(job, RunFigure::kTokensPerSecondPerGpu)) return tokens->median;
  const MeasuredFigure* step = figure_in(job, RunFigure::kStepSeconds);
  if (step == nullptr) return 0;
  const Training& training = job.scenario.training;
  return static_cast<double>(training.sequence.count()) * static_cast<double>(training.global_batch) /
         (static_cast<double>(job.scenario.base.world()) * step->median);
}

/// The convention whose count per token is nearest to the log's; none when none is near.
std::optional<CountedFlops> convention_of(const JobCase& job) {
  const MeasuredFigure* rate = figure_in(job, RunFigure::kTflopsPerGpu);
  const double tokens = tokens_per_second_per_gpu(job);
  if (rate == nullptr || tokens <= 0) return std::nullopt;
  const double logged = rate->median * 1e12 / tokens;
  std::optional<CountedFlops> best;
  double least = kConventionError;
  for (const bool recompute : {false, true}) {
    for (const AttentionCount attention : {AttentionCount::kCausalHalf, AttentionCount::kFull}) {
      const FlopsConvention convention{attention, true, recompute};
      const double count = training_flops_per_token(job.scenario.model, job.scenario.training.sequence, convention).value();
      const double error = std::abs(logged / count - 1);
      if (error >= least) continue;
      least = error;
      best = CountedFlops{convention, std::string(attention == AttentionCount::kFull ? "attention over all s keys"
                                                                                     : "attention over s/2 keys (causal)") +
                                          (recompute ? ", recomputed layers counted" : ", nothing recomputed counted")};
    }
  }
  return best;
}

std::optional<Metric> metric_of(RunFigure figure) {
  switch (figure) {
    case RunFigure::kStepSeconds:
      return Metric::kStepSeconds;
    case RunFigure::kTokensPerSecondPerGpu:
      return Metric::kTokensPerSecondPerGpu;
    case RunFigure::kTflopsPerGpu:
      return Metric::kTflopsPerGpu;
    case RunFigure::kMfu:
      return Metric::kMfu;
    case RunFigure::kResidentBytes:
      return Metric::kResidentBytes;
    case RunFigure::kPeakBytes:
      return Metric::kPeakBytes;
    case RunFigure::kReservedBytes:
      return Metric::kReservedBytes;
    default:
      return std::nullopt;
  }
}

bool is_memory(RunFigure figure) {
  return figure == RunFigure::kResidentBytes || figure == RunFigure::kPeakBytes || figure == RunFigure::kReservedBytes;
}

/// Of the step of `rank`, as a trace shows it where that is known.
double exposed_of(const JobCase& job, const TimeBreakdown& time, const MeasuredFigure& figure) {
  const Seconds waiting = job.scenario.base.pp > 1 ? time.exposed_pp + time.bubble : time.exposed_pp;
  ExposedTimes exposed{time.exposed_cp.value(), time.exposed_tp.value(), waiting.value(), time.exposed_dp.value()};
  auto traced = job.exposed.find(figure.rank);
  if (traced == job.exposed.end()) traced = job.exposed.find(-1);
  if (traced != job.exposed.end()) exposed = traced->second;
  switch (figure.figure) {
    case RunFigure::kExposedCpSeconds:
      return exposed.cp;
    case RunFigure::kExposedTpSeconds:
      return exposed.tp;
    case RunFigure::kExposedPpSeconds:
      return exposed.pp;
    case RunFigure::kExposedDpSeconds:
      return exposed.dp;
    default:
      return exposed.cp + exposed.tp + exposed.pp + exposed.dp;
  }
}

void set(ComparedFigure& compared, const Predicted& predicted, bool by_difference, double step) {
  compared.predicted = predicted.value;
  compared.low = predicted.low;
  compared.high = predicted.high;
  compared.standing = standing_of(compared.measured.median, predicted.value, predicted.low, predicted.high, by_difference, step);
}

}  // namespace

Outcome<JobComparison> compare_job(const JobCase& job, const RateSet& rates) {
  MeasuredRun run;
  run.scenario = job.scenario;
  run.gpus = job.scenario.base.world();
  const std::optional<CountedFlops> counted = convention_of(job);
  if (counted) run.flops = counted->convention;
  const MeasuredFigure* tflops = figure_in(job, RunFigure::kTflopsPerGpu);
  const MeasuredFigure* mfu = figure_in(job, RunFigure::kMfu);
  run.peak_flops_for_mfu = job.peak_flops > 0                    ? job.peak_flops
                           : tflops != nullptr && mfu != nullptr ? tflops->median * 1e12 / mfu->median
                                                                 : 0;
  Predictor predictor(rates);
  auto outcome = predict(run, predictor);
  if (const auto* reason = std::get_if<Unpredictable>(&outcome)) {
    return Problem{"ingest.unpredictable", "", "this recipe cannot be predicted: " + reason->reason,
                   "check recipe and scenario with cpfit simulate"};
  }
  const auto& prediction = std::get<RunPrediction>(outcome);
  JobComparison comparison;
  comparison.predicted = prediction.candidate;
  if (counted) comparison.flops_convention = counted->words;
  const std::int32_t stages = job.scenario.base.pp;
  for (const MeasuredFigure& figure : job.figures) {
    ComparedFigure compared;
    compared.measured = figure;
    const std::optional<Metric> metric = metric_of(figure.figure);
    const bool needs_count = figure.figure == RunFigure::kTflopsPerGpu || figure.figure == RunFigure::kMfu;
    if (needs_count && (!counted || (figure.figure == RunFigure::kMfu && run.peak_flops_for_mfu <= 0))) {
      compared.note = "the log's own figures fit no way of counting FLOPs that is known, so nothing comparable is predicted";
    } else if (is_memory(figure.figure) && figure.stage < 0 && stages > 1) {
      compared.note = "which pipeline stage this was measured on is not known";
    } else if (is_memory(figure.figure) && figure.stage >= 0) {
      MeasuredRun on_stage = run;
      on_stage.memory_stage = figure.stage;
      const auto again = predict(on_stage, predictor);
      set(compared, predicted_metric(on_stage, std::get<RunPrediction>(again), *metric), false, 0);
    } else if (metric) {
      set(compared, predicted_metric(run, prediction, *metric), false, 0);
      if (needs_count) compared.note = counted->words;
    } else {
      const double value = exposed_of(job, prediction.candidate.time, figure);
      const double spread = 1 + kNinetyPercent * kExposedSigma;
      set(compared, {value, value / spread, value * spread}, true, prediction.step_seconds.value);
      if (figure.figure == RunFigure::kExposedPpSeconds && stages > 1)
        compared.note = "waiting for other stages included, in both";
    }
    comparison.figures.push_back(std::move(compared));
  }
  return comparison;
}

}  // namespace cpfit
