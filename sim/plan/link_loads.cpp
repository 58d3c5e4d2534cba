#include "sim/plan/link_loads.h"

#include <algorithm>
#include <map>

#include "model/recipe/rank_grid.h"
#include "model/traffic/collective_traffic.h"
#include "model/traffic/cp_traffic.h"
#include "model/transformer/parameters.h"

namespace cpfit {

namespace {

/// Adds up bytes per link along routes.
class LoadCounter {
 public:
  explicit LoadCounter(const Topology& topology) : topology_(topology), bytes_(topology.links().size(), 0.0) {}

  void send(std::int64_t from, std::int64_t to, double bytes) {
    if (bytes <= 0.0 || from == to) return;
    for (const std::int32_t link : route(from, to)) bytes_[static_cast<std::size_t>(link)] += bytes;
  }
  [[nodiscard]] const std::vector<double>& bytes() const { return bytes_; }

 private:
  const std::vector<std::int32_t>& route(std::int64_t from, std::int64_t to) {
    auto [found, fresh] = routes_.try_emplace({from, to});
    if (fresh) found->second = topology_.route(from, to);
    return found->second;
  }
  const Topology& topology_;
  std::vector<double> bytes_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::int32_t>> routes_;
};

/// The member `by` places on in the group of `axis`, ring order.
std::int64_t along(const Recipe& recipe, Coordinate at, Axis axis, std::int32_t size, std::int32_t by) {
  std::int32_t& place = axis == Axis::kTp ? at.tp : axis == Axis::kCp ? at.cp : axis == Axis::kDp ? at.dp : at.pp;
  place = ((place + by) % size + size) % size;
  return rank_of(recipe, at);
}

}  // namespace

std::vector<LinkLoad> link_loads(const ScreenContext& context, const Recipe& recipe, std::size_t limit) {
  const Architecture& model = context.model;
  const Topology& topology = *context.cluster.topology;
  LoadCounter counter(topology);
  const double micro_batches =
      static_cast<double>(context.training.global_batch) / (static_cast<double>(recipe.dp) * recipe.micro_batch);
  const double layers = static_cast<double>(model.layers) / recipe.pp;  // per stage, mean
  const CpTraffic cp = cp_traffic(model, context.training, recipe, context.rules);
  const TpTraffic tp = tp_traffic(model, context.training, recipe);
  const double hidden_message = pp_message(model, context.training, recipe).value();
  const ParameterCount count = count_parameters(model);
  const double parameters = static_cast<double>(count.total()) / recipe.pp / recipe.tp;
  const DpTraffic dp = dp_traffic(parameters, context.training, recipe, context.rules);

  const double layer_runs = layers * micro_batches;
  const double tp_bytes = layer_runs * static_cast<double>(recipe.tp - 1) / recipe.tp *
                          ((tp.forward_gathers + tp.backward_gathers) * tp.gather.value() +
                           (tp.forward_scatters + tp.backward_scatters + 2 * (tp.forward_all_reduces + tp.backward_all_reduces)) *
                               tp.activation.value());
  const double exchange = (cp.forward.exchange + cp.backward.exchange).value() * layer_runs;
  const double cp_forward = cp.forward.sent.value() * layer_runs;
  const double cp_backward = cp.backward.sent.value() * layer_runs;
  const double leaving = cp.inner > 1 ? static_cast<double>(cp.inner - 1) / cp.inner : 0.0;
  const double ring_forward = cp_forward - cp.forward.exchange.value() * leaving * layer_runs;
  const double ring_backward = cp_backward - cp.backward.exchange.value() * leaving * layer_runs;
  const double ranks = static_cast<double>(dp.ranks);
  const double dp_bytes =
      dp.ranks > 1 ? (dp.reduce_scatter.value() * (dp.all_reduce ? 2.0 : 1.0) + dp.all_gather.value()) * (ranks - 1) / ranks
                   : 0.0;

  const std::int64_t routed = std::min(recipe.world(), kRoutedRanks);
  for (std::int64_t rank = 0; rank < routed; ++rank) {
    const Coordinate at = coordinate_of(recipe, rank);
    counter.send(rank, along(recipe, at, Axis::kTp, recipe.tp, 1), tp_bytes);
    if (recipe.cp > 1) {
      // Members of a ring stand `inner` places apart when the inner level is a head exchange, next to each other otherwise.
      const std::int32_t stride = cp.forward.exchanges > 0 ? cp.inner : 1;
      counter.send(rank, along(recipe, at, Axis::kCp, recipe.cp, stride), ring_forward);
      counter.send(rank, along(recipe, at, Axis::kCp, recipe.cp, context.rules.reverse_ring_in_backward ? -stride : stride),
                   ring_backward);
      if (cp.forward.exchanges > 0) {
        const std::int32_t base = at.cp / cp.inner * cp.inner;
        for (std::int32_t other = 0; other < cp.inner; ++other) {
          Coordinate to = at;
          to.cp = base + other;
          counter.send(rank, rank_of(recipe, to), exchange / cp.inner);
        }
      }
    }
    if (at.pp + 1 < recipe.pp)
      counter.send(rank, along(recipe, at, Axis::kPp, recipe.pp, 1), hidden_message * micro_batches * recipe.vpp);
    if (at.pp > 0) counter.send(rank, along(recipe, at, Axis::kPp, recipe.pp, -1), hidden_message * micro_batches * recipe.vpp);
    if (dp.ranks > 1) {
      // The ring over dp*cp: along cp first, then on to the next dp rank.
      Coordinate next = at;
      next.cp = (at.cp + 1) % recipe.cp;
      if (next.cp == 0) next.dp = (at.dp + 1) % recipe.dp;
      counter.send(rank, rank_of(recipe, next), dp_bytes);
    }
  }

  std::vector<LinkLoad> loads;
  const std::vector<double>& bytes = counter.bytes();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] <= 0.0) continue;
    const Link& link = topology.links()[i];
    LinkLoad load;
    load.from = topology.vertices()[static_cast<std::size_t>(link.from)].name;
    load.to = topology.vertices()[static_cast<std::size_t>(link.to)].name;
    load.bytes = Bytes(bytes[i]);
    load.busy = Bytes(bytes[i]) / link.capacity;
    loads.push_back(std::move(load));
  }
  std::stable_sort(loads.begin(), loads.end(), [](const LinkLoad& a, const LinkLoad& b) { return a.busy > b.busy; });
  if (loads.size() > limit) loads.resize(limit);
  return loads;
}

}  // namespace cpfit
