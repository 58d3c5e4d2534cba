#include "model/memory/in_flight.h"

#include <algorithm>

namespace cpfit {
namespace {

InFlight interleaved(const Recipe& recipe, const ResolvedLayout& layout, std::int32_t stage, std::int64_t micro_batches) {
  const std::int64_t pp = recipe.pp;
  const std::int64_t vpp = recipe.vpp;
  std::int64_t forwards = std::min(micro_batches * vpp, 2 * (pp - stage - 1) + (vpp - 1) * pp + 1);
  InFlight result;
  result.micro_batches = 1;
  // Whole rounds over the chunks come first; the warm-up is shorter than two rounds, so this loop is short.
  while (forwards > 0) {
    for (std::int64_t chunk = 0; chunk < vpp && forwards > 0; ++chunk) {
      const std::int64_t here = std::min(forwards, pp);
      const auto index = static_cast<std::size_t>(chunk * pp + stage);
      result.layers += static_cast<double>(here * layout.layers_of_chunk[index]);
      if (chunk == 0) result.first_chunk += static_cast<double>(here);
      forwards -= here;
    }
  }
  return result;
}

}  // namespace

InFlight in_flight(const Recipe& recipe, const ResolvedLayout& layout, std::int32_t stage, std::int64_t micro_batches) {
  if (recipe.vpp > 1) return interleaved(recipe, layout, stage, micro_batches);
  const bool gpipe = recipe.schedule == Schedule::kGpipe && recipe.pp > 1;
  const std::int64_t alive = gpipe ? micro_batches : std::min<std::int64_t>(micro_batches, recipe.pp - stage);
  InFlight result;
  result.layers = static_cast<double>(alive * layout.layers_of_stage[static_cast<std::size_t>(stage)]);
  result.first_chunk = static_cast<double>(alive);
  if (recipe.schedule == Schedule::kZeroBubble && recipe.pp > 1)
    result.pending = static_cast<double>(std::clamp<std::int64_t>(micro_batches - alive, 0, stage));
  result.micro_batches = gpipe ? static_cast<double>(micro_batches) : 1.0;
  return result;
}

}  // namespace cpfit
