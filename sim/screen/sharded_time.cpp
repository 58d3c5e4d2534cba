#include "sim/screen/sharded_time.h"

#include <algorithm>

namespace cpfit {

namespace {

/// One forward pass that gathers.
double forward_exposed(const ShardedTimes& t, double layers, double forward) {
  const double under = forward / layers;  // the layer that hides the next one's gather
  const double waits = std::max(0.0, t.layer.gather - under), hidden = t.layer.gather - waits;
  return t.root.gather + t.layer.gather + (layers - 1.0) * (waits + hidden * t.lost);
}

/// The reductions that nothing follows: of `layers` layers and the root, one stream for scatters, one behind it for sums over
/// replicas.
double last_reductions(const ShardedTimes& t, double layers) {
  const double scatters = layers * t.layer.scatter + t.root.scatter;
  if (!t.beside) return scatters + layers * t.layer.replicas + t.root.replicas;
  return std::max(scatters, t.layer.scatter + layers * t.layer.replicas) + t.root.replicas;
}

/// One backward pass that gathers and reduces.
double backward_exposed(const ShardedTimes& t, double layers, double backward) {
  const double over = backward / layers;
  const double shared = t.layer.gather + t.layer.scatter, replicas = t.layer.replicas;
  const double longest = t.beside ? std::max(shared, replicas) : shared + replicas;
  const double waits = std::max(0.0, longest - over);
  const double hidden = longest > 0.0 ? (longest - waits) / longest : 0.0;  // of what passes
  const double held = shared + 2.0 * std::min(t.layer.gather, t.layer.scatter);
  const double slowed = hidden * (held * t.lost + replicas * t.replicas_lost);
  return (layers - 1.0) * (waits + slowed) + last_reductions(t, 1.0);
}

}  // namespace

double sharded_exposed(const ShardedTimes& times, double layers, double chunks, double forward, double backward,
                       double micro_batches, bool stays_gathered) {
  if (stays_gathered) return forward_exposed(times, layers, forward) + last_reductions(times, layers) / chunks;
  return (forward_exposed(times, layers, forward) + backward_exposed(times, layers, backward)) * micro_batches;
}

}  // namespace cpfit
