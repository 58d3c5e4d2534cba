#include "sim/screen/gradient_units.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "model/traffic/collective_traffic.h"
#include "sim/screen/operators.h"

namespace cpfit {

namespace {

/// Elements of a layer's weight matrices on one rank, in the order in which backward finishes them; 0 where there are fewer.
std::array<double, 7> matrices_backward(const ScreenContext& context, const Recipe& recipe) {
  const auto linears = operators::layer_linears(context, recipe, operators::rank_shape(context, recipe));
  std::array<double, 7> sizes{};
  std::size_t at = 0;
  for (auto linear = linears.rbegin(); linear != linears.rend(); ++linear) {
    if (linear->parts[0] <= 0.0) {
      sizes[at++] = linear->n * linear->k;
      continue;
    }
    for (const double n : linear->parts) {
      if (n > 0.0) sizes[at++] = n * linear->k;
    }
  }
  return sizes;
}

}  // namespace

double matrices_per_layer(const ScreenContext& context, const Recipe& recipe) {
  const auto sizes = matrices_backward(context, recipe);
  return static_cast<double>(std::count_if(sizes.begin(), sizes.end(), [](double size) { return size > 0.0; }));
}

double sliced_tensors(const ScreenContext& context, const Recipe& recipe) {
  return matrices_per_layer(context, recipe) + static_cast<double>(context.model.norms_per_layer);
}

Seconds host_time_of_slices(const ScreenContext& context, std::int64_t ranks, double tensors) {
  return launch_cost(context.rates, false) * (context.rules.shard_host_operations * static_cast<double>(ranks) * tensors);
}

double whole_tensor_buckets(const ScreenContext& context, const Recipe& recipe, double parameters, double layers) {
  const double bytes = context.training.grad_dtype == GradDtype::kFp32 ? 4.0 : 2.0;
  const double full = gradient_bucket(context.rules, std::int64_t{recipe.dp} * recipe.cp).value() / bytes;
  const auto sizes = matrices_backward(context, recipe);
  double buckets = 0.0, held = 0.0, in_layers = 0.0;
  for (double layer = 0.0; layer < layers; layer += 1.0) {
    for (const double size : sizes) {
      held += size;
      in_layers += size;
      if (held < full) continue;
      buckets += 1.0;
      held = 0.0;
    }
  }
  // What is no layer's are the matrices of the vocabulary, one or two on a rank.
  const double table = static_cast<double>(context.model.vocab) * static_cast<double>(context.model.hidden) / recipe.tp;
  const double tables = std::round(std::max(0.0, parameters - in_layers) / table);
  if (tables > 0.0) return buckets + tables;  // the last layers' rest goes with the embedding
  return buckets + (held > 0.0 ? 1.0 : 0.0);
}

}  // namespace cpfit
