#include "cli/ingest/trace.h"

#include <fmt/format.h>

#include <array>

#include "calibrate/read/trace_kernels.h"
#include "sim/plan/confirm.h"
#include "sim/plan/step_timeline.h"
#include "sim/schedule/step_size.h"
#include "sim/timeline/lanes.h"

namespace cpfit::cli {

namespace {

bool is_exposure(RunFigure figure) { return figure >= RunFigure::kExposedSeconds; }

/// The lanes of one simulated rank as a trace would record them.
std::vector<TracedKernel> kernels_of(const Timeline& lanes, std::int32_t rank, bool simulated) {
  std::vector<TracedKernel> kernels;
  for (const SpanLane& lane : lanes.lanes) {
    if (lane.rank != rank) continue;
    for (const LaneSpan& span : lane.spans) {
      TracedKernel kernel;
      kernel.start = span.start;
      kernel.end = span.end;
      switch (span.kind) {
        case SpanKind::kCp:
          kernel.axis = MessageAxis::kCp;
          break;
        case SpanKind::kTp:
          kernel.axis = MessageAxis::kTp;
          break;
        case SpanKind::kPp:
          kernel.axis = MessageAxis::kPp;
          break;
        case SpanKind::kDp:
          kernel.axis = MessageAxis::kDp;
          break;
        case SpanKind::kForeign:
          continue;
        default:
          break;
      }
      if (kernel.axis != MessageAxis::kUnknown) {
        kernel.work = DeviceWork::kCommunication;
        if (!simulated) kernel.start = span.posted;
      }
      kernels.push_back(kernel);
    }
  }
  return kernels;
}

ExposedTimes times_of(const AxisExposure& exposure) {
  const auto seconds = [&](MessageAxis axis) {
    return static_cast<double>(exposure.exposed[static_cast<std::size_t>(axis)]) * 1e-12;
  };
  return {seconds(MessageAxis::kCp), seconds(MessageAxis::kTp), seconds(MessageAxis::kPp), seconds(MessageAxis::kDp)};
}

}  // namespace

PredictedTraces predicted_traces(const Scenario& scenario, const RateSet& rates, const std::vector<MeasuredFigure>& figures,
                                 bool simulated) {
  PredictedTraces predicted;
  bool any = false;
  for (const MeasuredFigure& figure : figures) any = any || is_exposure(figure.figure);
  if (!any) return predicted;
  const std::string instead =
      "compared with the screen's parts, which count kernels slowed by messages as exposed too: more than a trace shows";
  Outcome<Workbench> bench = Workbench::build(scenario, rates);
  if (!bench.ok()) {
    predicted.note = instead;
    return predicted;
  }
  const Recipe& recipe = scenario.base;
  const LegalityCase legal = bench.value().legality(scenario.training, recipe);
  if (first_violation(legal) >= 0) {
    predicted.note = fmt::format("the timeline does not simulate this recipe ({}); {}",
                                 legality_rules()[static_cast<std::size_t>(first_violation(legal))].id, instead);
    return predicted;
  }
  bench.value().prepare(recipe);
  const std::int64_t size = schedule::estimated_activities(bench.value().context(scenario.training), recipe, {});
  if (size > ConfirmLimits{}.activities) {
    predicted.note = fmt::format("the step is too large to simulate here (about {:.1f} million activities); {}",
                                 static_cast<double>(size) / 1e6, instead);
    return predicted;
  }
  const Outcome<StepTimeline> step = step_timeline(bench.value(), scenario.training, recipe, {});
  if (!step.ok()) {
    predicted.note = step.problems().front().message + "; " + instead;
    return predicted;
  }
  const Timeline lanes = timeline::timeline_of(step->history());
  const auto of = [&](std::int32_t rank) {
    return times_of(axis_exposure(kernels_of(lanes, rank, simulated), INT64_MIN, INT64_MAX));
  };
  predicted.of_rank[-1] = of(step->answer.rank);
  for (const MeasuredFigure& figure : figures) {
    if (!is_exposure(figure.figure) || figure.rank < 0 || figure.rank >= recipe.world() ||
        predicted.of_rank.contains(figure.rank))
      continue;
    predicted.of_rank[figure.rank] = of(step->step->ranks.index_of(figure.rank));
  }
  return predicted;
}

}  // namespace cpfit::cli
