// What people read off a timeline: communication summed by axis and pass, the span over the ranks, and the critical path summed
// by kind of work. Pure sums over what sim/timeline found; the command line and the desktop program show the same ones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/plan/step_memory.h"
#include "sim/plan/step_timeline.h"
#include "sim/timeline/critical_path.h"
#include "sim/timeline/loads.h"

namespace cpfit {

/// Rows of one rank added up over the layers: by axis, then pass; `layer` is -1.
[[nodiscard]] std::vector<timeline::ExposureRow> by_axis_and_pass(const timeline::RankAnswer& answer);

/// One axis over all simulated ranks.
struct AxisSpan {
  engine::TrafficAxis axis = engine::TrafficAxis::kNone;
  Seconds least, most;                         // exposed in a step
  std::int32_t least_rank = 0, most_rank = 0;  // simulated ranks, of equals the first
};
/// The four axes of ours that occur, cp, tp, pp, dp.
[[nodiscard]] std::vector<AxisSpan> axis_spans(const timeline::StepAnswer& answer);

/// Links of the critical path of one kind: the same work, pass and name without a ring step's number.
struct PathPart {
  std::string name;  // "attention, forward"; "host launches" for the part before the first link
  bool communication = false;
  std::int64_t links = 0;
  Seconds time;
  Seconds stretch;  // of it, because something else ran beside
};
/// Longest first; together they are the step.
[[nodiscard]] std::vector<PathPart> path_parts(const timeline::History& history, const timeline::CriticalPath& path);

/// What to shorten, and how much the step could gain at most from it: one or two sentences with figures.
[[nodiscard]] std::string path_sentence(const std::vector<PathPart>& parts);

/// The step as the pipeline lives it. Their sum is the step.
struct StepPhases {
  Seconds filling;  // warm-up: from the first kernel of a forward pass until the stage that waits longest starts its first kernel
  Seconds steady;   // until the first stage has finished its last backward kernel
  Seconds draining;  // until the last one has
  Seconds update;    // optimizer and gathers before that kernel, gradients that are still being reduced at the end
};
[[nodiscard]] StepPhases step_phases(const timeline::History& history);

/// What is alive at the highest peak of a pipeline stage.
struct StagePeak {
  std::int32_t stage = 0, rank = 0;  // simulated rank with the stage's highest peak, of equals the first
  Bytes peak, resident;
  Seconds time;
  struct Part {
    std::string name;  // "saved by the attention half"
    Bytes bytes;
    std::int64_t tensors = 0, micro_batches = 0;
  };
  std::vector<Part> parts;  // beyond resident, largest first
};
[[nodiscard]] std::vector<StagePeak> stage_peaks(const StepMemory& memory, const schedule::SimulatedRanks& ranks);

/// A link whose busy time differs between two runs on the same or a changed graph.
struct LinkShift {
  std::string from, to;
  LinkLoad before, after;  // 0 where one of them does not use it
};
/// By the difference of their busy times, largest first; links that did not change are left out.
[[nodiscard]] std::vector<LinkShift> link_shifts(const std::vector<LinkLoad>& before, const std::vector<LinkLoad>& after);

}  // namespace cpfit
