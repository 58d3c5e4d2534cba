// How many micro-batches a rank has begun and not finished: what its activations are held for.
#pragma once

#include <cstdint>
#include <vector>

#include "gui/timeline/step_picture.h"

namespace cpfit::gui {

struct InFlightPoint {
  std::int64_t time = 0;
  std::int32_t count = 0;  // from then on
  friend bool operator==(const InFlightPoint&, const InFlightPoint&) = default;
};

/// From a micro-batch's first forward kernel on a chunk of the rank to the end of its last backward kernel there. Chunks count
/// apart. Ascending; empty where no span has a micro-batch.
[[nodiscard]] std::vector<InFlightPoint> micro_batches_in_flight(const StepPicture& picture, std::int32_t rank);

}  // namespace cpfit::gui
