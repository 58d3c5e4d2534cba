// A real trace beside the predicted step: one step of one GPU as lanes, put on the step's clock, so that both are read on one
// axis with the same hatches and the same sums.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "calibrate/read/trace.h"
#include "gui/timeline/step_picture.h"

namespace cpfit::gui {

/// The steps to choose from: the profiler's marks, or the whole trace as one where it has none.
[[nodiscard]] std::vector<TracedStep> steps_of(const RecordedTrace& trace);

/// Lanes of one device within one step; instant 0 is the step's beginning (of a host's mark: its first work of the GPU). One lane
/// per stream and kind of work, a second one where kernels of a stream overlap. Communication is cut where compute begins and
/// ends, so that every piece is either hidden or exposed (trace_overlap.h has the same sums).
struct RecordedLanes {
  std::string title, note;
  std::int64_t length = 0;      // last end
  std::vector<SpanLane> lanes;  // names of spans: 0 compute, 1 communication, 2 copy
};
[[nodiscard]] RecordedLanes recorded_lanes(const RecordedTrace& trace, std::size_t device, const TracedStep& step);

/// The picture with the recorded lanes as one more rank, behind the others. The step becomes as long as the longer of both.
[[nodiscard]] std::shared_ptr<const StepPicture> with_recorded(const StepPicture& picture, const RecordedLanes& recorded);

}  // namespace cpfit::gui
