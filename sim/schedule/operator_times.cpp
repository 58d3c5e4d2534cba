#include "sim/schedule/operator_times.h"

#include <algorithm>

#include "model/transformer/parameters.h"
#include "sim/screen/attention_cost.h"
#include "sim/screen/layer_cost.h"

namespace cpfit::schedule {

namespace {

static_assert(LaunchCounts::kMlp == operators::kForwardCalls * operators::kMlpForwardKernels &&
                  LaunchCounts::kRest + LaunchCounts::kAttention == operators::kForwardCalls * operators::kForwardKernels &&
                  8 * LaunchCounts::kGradient + 2 * (LaunchCounts::kNormBack + LaunchCounts::kMiddleBack) +
                          LaunchCounts::kAttentionBack ==
                      operators::kBackwardKernels,
              "the screen and the timeline call the same kernels");

using engine::Picoseconds;
using engine::to_picoseconds;

std::vector<Picoseconds> whole(const std::vector<double>& seconds) {
  std::vector<Picoseconds> times;
  times.reserve(seconds.size());
  for (const double value : seconds) times.push_back(to_picoseconds(Seconds(value)));
  return times;
}

std::vector<RingRankTimes> ring_times(const ScreenContext& context, const Recipe& recipe, const operators::RankShape& shape,
                                      bool windowed) {
  std::vector<RingRankTimes> ring;
  const std::int32_t ranks = recipe.cp / a2a_ranks(recipe);
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    const operators::StepTimes steps = operators::attention_steps_of(context, recipe, shape, windowed, rank);
    ring.push_back({whole(steps.forward), whole(steps.backward), whole(steps.forward_merge), whole(steps.backward_merge)});
  }
  return ring;
}

}  // namespace

OperatorTimes operator_times(const ScreenContext& context, const Recipe& recipe) {
  OperatorTimes times;
  const operators::RankShape shape = operators::rank_shape(context, recipe);
  const auto linears = operators::layer_linears(context, recipe, shape);
  const auto product = [&](const operators::Linear& linear) {
    return to_picoseconds(operators::linear_forward(context, shape, linear).time);
  };
  const auto input_gradient = [&](const operators::Linear& linear) {
    return to_picoseconds(operators::linear_input_gradient(context, shape, linear).time);
  };
  const auto weight_gradient = [&](const operators::Linear& linear) {
    return to_picoseconds(operators::linear_weight_gradient(context, shape, linear).time);
  };
  const Seconds forward = operators::elementwise(context, recipe, shape, false).time;
  const Seconds backward = operators::elementwise(context, recipe, shape, true).time;
  const operators::ElementwiseShares share = operators::elementwise_shares(context, recipe, shape, false);
  const operators::ElementwiseShares share_back = operators::elementwise_shares(context, recipe, shape, true);
  HalfTimes* const halves[] = {&times.attention, &times.mlp};
  for (std::size_t half = 0; half < 2; ++half) {
    HalfTimes& t = *halves[half];
    const operators::Linear column = linears[2 * half], row = linears[2 * half + 1];
    t.column = product(column);
    t.row = product(row);
    t.column_input_gradient = input_gradient(column);
    t.column_weight_gradient = weight_gradient(column);
    t.row_input_gradient = input_gradient(row);
    t.row_weight_gradient = weight_gradient(row);
    t.norm = to_picoseconds(forward * (0.5 * share.residual));
    t.norm_back = to_picoseconds(backward * (0.5 * share_back.residual));
    t.middle = to_picoseconds(forward * (half == 0 ? share.rope : share.activation));
    t.middle_back = to_picoseconds(backward * (half == 0 ? share_back.rope : share_back.activation));
  }

  const Architecture& model = context.model;
  const bool all_windowed = context.training.mask.kind == MaskKind::kSlidingWindow;
  const std::int64_t windowed = all_windowed ? model.layers : model.windowed_layers();
  if (windowed > 0) times.windowed_ring = ring_times(context, recipe, shape, true);
  if (windowed < model.layers) times.full_ring = ring_times(context, recipe, shape, false);

  const LayerCost ends = end_costs(context, recipe);
  times.embedding = to_picoseconds(ends.embedding.compute);
  times.head_forward = to_picoseconds(ends.head_forward.compute);
  times.head_backward = to_picoseconds(ends.head_backward.compute);
  times.head_weight_gradient = to_picoseconds(ends.head_weights.compute);
  return times;
}

}  // namespace cpfit::schedule
