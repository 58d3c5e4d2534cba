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
      for (std::int32_t m = group; m < end; ++m) turns.push_back({true, m, chunk, false});
    }
  }
  return turns;
}

std::vector<StageTurn> zero_bubble_turns(std::int32_t pp, std::int32_t stage, std::int32_t micro_batches) {
  std::vector<StageTurn> turns;
  const std::int32_t ahead = std::min(pp - 1 - stage, micro_batches);
  for (std::int32_t m = 0; m < ahead; ++m) turns.push_back({true, m, 0, false});
  for (std::int32_t m = 0; m < micro_batches; ++m) {
    if (ahead + m < micro_batches) turns.push_back({true, ahead + m, 0, false});
    turns.push_back({false, m, 0, false});
    if (m >= stage) turns.push_back({false, m - stage, 0, true});
  }
  for (std::int32_t m = std::max(0, micro_batches - stage); m < micro_batches; ++m) turns.push_back({false, m, 0, true});
  return turns;
}

}  // namespace

std::vector<StageTurn> stage_turns(const Recipe& recipe, std::int32_t stage, std::int32_t micro_batches) {
  if (recipe.schedule == Schedule::kZeroBubble) return zero_bubble_turns(recipe.pp, stage, micro_batches);
  const std::vector<StageTurn> forward = forward_turns(recipe, micro_batches);
  std::vector<StageTurn> backward = forward;
  for (StageTurn& turn : backward) turn = {false, turn.micro_batch, recipe.vpp - 1 - turn.chunk, false};
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
