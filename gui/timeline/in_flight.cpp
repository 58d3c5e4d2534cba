#include "gui/timeline/in_flight.h"

#include <algorithm>
#include <limits>
#include <map>

namespace cpfit::gui {

std::vector<InFlightPoint> micro_batches_in_flight(const StepPicture& picture, std::int32_t rank) {
  struct Life {
    std::int64_t begin = std::numeric_limits<std::int64_t>::max(), end = 0;
  };
  std::map<std::pair<std::int16_t, std::int8_t>, Life> lives;
  for (const std::int32_t index : picture.ranks[static_cast<std::size_t>(rank)].lanes) {
    const SpanLane& lane = picture.lane(index);
    if (family_of(lane) != LaneFamily::kCompute) continue;
    for (const LaneSpan& span : lane.spans) {
      if (span.micro_batch < 0 || span.layer < 0 || span.pass == SpanPass::kUpdate) continue;
      Life& life = lives[{span.micro_batch, span.chunk}];
      life.begin = std::min(life.begin, span.start);
      life.end = std::max(life.end, span.end);
    }
  }
  std::map<std::int64_t, std::int32_t> changes;
  for (const auto& [key, life] : lives) {
    ++changes[life.begin];
    --changes[life.end];
  }
  std::vector<InFlightPoint> points;
  std::int32_t count = 0;
  for (const auto& [time, change] : changes) {
    if (change == 0) continue;
    points.push_back({time, count += change});
  }
  return points;
}

}  // namespace cpfit::gui
