#include "model/record/figures.h"

#include <algorithm>
#include <limits>

namespace cpfit {

std::vector<Figure> figures_of(const Candidate& candidate) {
  const TimeBreakdown& time = candidate.time;
  const CpExposure& cp = candidate.cp;
  const StageMemory& memory = candidate.memory;
  const MemoryVerdict& verdict = candidate.verdict;
  std::vector<Figure> figures = {
      {"step_seconds", time.step().value()},
      {"step_low_seconds", candidate.step_low.value()},
      {"step_high_seconds", candidate.step_high.value()},
      {"tokens_per_second_per_gpu", candidate.tokens_per_second_per_gpu},
      {"mfu_share", candidate.mfu},
      {"hfu_share", candidate.hfu},
      {"time.compute_seconds", time.compute.value()},
      {"time.exposed_cp_seconds", time.exposed_cp.value()},
      {"time.exposed_tp_seconds", time.exposed_tp.value()},
      {"time.exposed_pp_seconds", time.exposed_pp.value()},
      {"time.exposed_dp_seconds", time.exposed_dp.value()},
      {"time.bubble_seconds", time.bubble.value()},
      {"time.launch_seconds", time.launch.value()},
      {"time.optimizer_seconds", time.optimizer.value()},
      {"time.other_seconds", time.other.value()},
      {"cp.forward_exposed_seconds", cp.forward_exposed.value()},
      {"cp.backward_exposed_seconds", cp.backward_exposed.value()},
      {"cp.forward_message_seconds", cp.forward_message.value()},
      {"cp.backward_message_seconds", cp.backward_message.value()},
      {"cp.forward_step_compute_seconds", cp.forward_step_compute.value()},
      {"cp.sent_per_layer_bytes", cp.bytes_sent_per_layer.value()},
      {"memory.device_bytes", memory.device.value()},
      {"memory.device_upper_bytes", verdict.upper.value()},
      {"memory.capacity_bytes", verdict.capacity.value()},
      {"memory.margin_bytes", verdict.margin.value()},
      {"memory.resident_bytes", memory.resident.value()},
      {"memory.forward_peak_bytes", memory.forward_peak.value()},
      {"memory.backward_peak_bytes", memory.backward_peak.value()},
      {"memory.peak_bytes", memory.peak.value()},
      {"memory.reserved_bytes", memory.reserved.value()},
  };
  for (int i = 0; i < kComponentCount; ++i) {
    figures.push_back({"memory.components." + std::string(name_of(static_cast<Component>(i))) + "_bytes",
                       memory.components[static_cast<std::size_t>(i)].value()});
  }
  return figures;
}

double FigureChange::relative() const {
  if (before == after) return 0.0;
  return before == 0.0 ? std::numeric_limits<double>::infinity() : (after - before) / before;
}

double figure_named(const std::vector<Figure>& figures, const std::string& name) {
  const auto found = std::ranges::find(figures, name, &Figure::name);
  return found == figures.end() ? 0.0 : found->value;
}

std::vector<FigureChange> changed_figures(const std::vector<Figure>& before, const std::vector<Figure>& after) {
  std::vector<FigureChange> changes;
  for (const Figure& figure : after) {
    const double then = figure_named(before, figure.name);
    if (then != figure.value) changes.push_back({figure.name, then, figure.value});
  }
  for (const Figure& figure : before) {
    if (std::ranges::find(after, figure.name, &Figure::name) == after.end() && figure.value != 0.0)
      changes.push_back({figure.name, figure.value, 0.0});
  }
  return changes;
}

}  // namespace cpfit
