#include "model/recipe/pipeline_order.h"

#include <algorithm>

namespace cpfit {

namespace {

/// (micro-batch, chunk) in forward order: groups of pp micro-batches pass through all chunks.
std::vector<StageTurn> forward_turns(const Recipe& recipe, std::int32_t micro_batches) {
  std::vector<StageTurn> turns;
  for (std::int32_t group = 0; group < micro_batches; group += recipe.pp) {
    const std::int32_t end = std::min(micro_batches, group + recipe.pp);
    for (std::int32_t chunk = 0; chunk < recipe.vpp; ++chunk) {
      for (std::int32_t m = group; m < end; ++m) turns.push_back({true, m, chunk});
    }
  }
  return turns;
}

}  // namespace

std::vector<StageTurn> stage_turns(const Recipe& recipe, std::int32_t stage, std::int32_t micro_batches) {
  const std::vector<StageTurn> forward = forward_turns(recipe, micro_batches);
  std::vector<StageTurn> backward = forward;
  for (StageTurn& turn : backward) turn = {false, turn.micro_batch, recipe.vpp - 1 - turn.chunk};
  const std::int32_t after = recipe.pp - 1 - stage;
  std::int32_t warm_up_turns = after;
  if (recipe.vpp > 1) warm_up_turns = 2 * after + (recipe.vpp - 1) * recipe.pp;
  const std::size_t warm_up =
      recipe.schedule == Schedule::kGpipe ? forward.size() : std::min(static_cast<std::size_t>(warm_up_turns), forward.size());
  std::vector<StageTurn> turns(forward.begin(), forward.begin() + static_cast<std::ptrdiff_t>(warm_up));
  for (std::size_t i = 0; i < backward.size(); ++i) {
    if (warm_up + i < forward.size()) turns.push_back(forward[warm_up + i]);
    turns.push_back(backward[i]);
  }
  return turns;
}

}  // namespace cpfit
