#include "sim/plan/step_flows.h"

#include <algorithm>
#include <map>

#include "model/recipe/axis_fields.h"
#include "model/recipe/data_ranks.h"
#include "model/recipe/rank_grid.h"
#include "model/traffic/collective_traffic.h"
#include "model/traffic/cp_traffic.h"
#include "model/transformer/parameters.h"
#include "sim/screen/sharded_time.h"
#include "sim/screen/stage_work.h"

namespace cpfit {

namespace {

/// The member `by` places on in the group of `axis`, ring order.
std::int64_t along(const Recipe& recipe, Coordinate at, Axis axis, std::int32_t size, std::int32_t by) {
  std::int32_t& place = place_on(at, axis);
  place = ((place + by) % size + size) % size;
  return rank_of(recipe, at);
}

}  // namespace

void for_each_step_flow(const ScreenContext& context, const Recipe& recipe, std::int64_t ranks,
                        const std::function<void(const StepFlow&)>& visit) {
  const Architecture& model = context.model;
  const double micro_batches =
      static_cast<double>(context.training.global_batch) / (static_cast<double>(recipe.dp) * recipe.micro_batch);
  const double layers = static_cast<double>(model.layers) / recipe.pp;  // per stage, mean
  const CpTraffic cp = cp_traffic(model, context.training, recipe, context.rules);
  const TpTraffic tp = tp_traffic(model, context.training, recipe);
  const double hidden_message = pp_message(model, context.training, recipe, context.rules).value();
  const double gathered_parts = pp_gather(model, context.training, recipe, context.rules).value() * (recipe.tp - 1) / recipe.tp *
                                micro_batches * recipe.vpp;
  const ParameterCount count = count_parameters(model);
  const double parameters = static_cast<double>(count.total()) / recipe.pp / recipe.tp;
  const DpTraffic dp = dp_traffic(parameters, context.training, recipe, context.rules);
  // What no layer holds stays gathered between forward and backward.
  const double beside = static_cast<double>(count.total() - count.layer.total() * model.layers) / recipe.pp / recipe.tp;
  const double root = dp_traffic(beside, context.training, recipe, context.rules).all_gather.value();

  // What backward computes again is sent again: attention's exchanges, and the collectives of whole layers and of MLP halves.
  const Repeated repeated = repeated_on(recipe, context.rules, layers);
  const bool whole_layers = recipe.recompute.kind == RecomputeKind::kFull || recipe.recompute.kind == RecomputeKind::kBlock;
  const double backward_runs = layers * micro_batches;
  const double forward_runs = backward_runs + ((whole_layers ? repeated.rest : 0.0) + repeated.mlp / 2.0) * micro_batches;
  const double attention_runs = backward_runs + repeated.attention * micro_batches;
  const auto tp_sent = [&](std::int32_t gathers, std::int32_t scatters, std::int32_t all_reduces) {
    return gathers * tp.gather.value() + (scatters + 2 * all_reduces) * tp.activation.value();
  };
  const double tp_bytes = static_cast<double>(recipe.tp - 1) / recipe.tp *
                          (forward_runs * tp_sent(tp.forward_gathers, tp.forward_scatters, tp.forward_all_reduces) +
                           backward_runs * tp_sent(tp.backward_gathers, tp.backward_scatters, tp.backward_all_reduces));
  const double exchange = cp.forward.exchange.value() * attention_runs + cp.backward.exchange.value() * backward_runs;
  const double cp_forward = cp.forward.sent.value() * attention_runs;
  const double cp_backward = cp.backward.sent.value() * backward_runs;
  const double leaving = cp.inner > 1 ? static_cast<double>(cp.inner - 1) / cp.inner : 0.0;
  const double ring_forward = cp_forward - cp.forward.exchange.value() * leaving * attention_runs;
  const double ring_backward = cp_backward - cp.backward.exchange.value() * leaving * backward_runs;
  const double members = static_cast<double>(dp.ranks), copies = static_cast<double>(dp.replicas);
  // Fully sharded, every micro-batch gathers for forward and for backward and reduces, unless weights stay gathered.
  const bool each = dp.gathers_per_micro_batch > 0 && !weights_stay_gathered(context.rules, recipe);
  const double times = each ? micro_batches : 1.0, gathers = each ? dp.gathers_per_micro_batch : 1.0;
  const double reduced = dp.reduce_scatter.value() * (dp.all_reduce ? 2.0 : 1.0),
               gathered = dp.all_gather.value() * gathers - (each && !context.rules.zero3_waits ? root : 0.0);
  const double dp_bytes = dp.ranks > 1 ? times * (reduced + gathered) * (members - 1) / members : 0.0;
  const double replica_bytes = 2.0 * times * dp.replica_reduce.value() * (copies - 1) / copies;

  const auto send = [&](std::int64_t from, std::int64_t to, Axis axis, double bytes) {
    if (bytes > 0.0 && from != to) visit({from, to, axis, bytes});
  };
  const std::int64_t routed = std::min(recipe.world(), ranks);
  for (std::int64_t rank = 0; rank < routed; ++rank) {
    const Coordinate at = coordinate_of(recipe, rank);
    const int receives = (at.pp > 0 ? 1 : 0) + (at.pp + 1 < recipe.pp ? 1 : 0);  // of a micro-batch and chunk
    send(rank, along(recipe, at, Axis::kTp, recipe.tp, 1), Axis::kTp, tp_bytes + gathered_parts * receives);
    if (recipe.cp > 1) {
      // Members of a ring stand `inner` places apart when the inner level is a head exchange, next to each other otherwise.
      const std::int32_t stride = cp.forward.exchanges > 0 ? cp.inner : 1;
      send(rank, along(recipe, at, Axis::kCp, recipe.cp, stride), Axis::kCp, ring_forward);
      send(rank, along(recipe, at, Axis::kCp, recipe.cp, context.rules.reverse_ring_in_backward ? -stride : stride), Axis::kCp,
           ring_backward);
      if (cp.forward.exchanges > 0) {
        const std::int32_t base = at.cp / cp.inner * cp.inner;
        for (std::int32_t other = 0; other < cp.inner; ++other) {
          Coordinate to = at;
          to.cp = base + other;
          send(rank, rank_of(recipe, to), Axis::kCp, exchange / cp.inner);
        }
      }
    }
    if (at.pp + 1 < recipe.pp)
      send(rank, along(recipe, at, Axis::kPp, recipe.pp, 1), Axis::kPp, hidden_message * micro_batches * recipe.vpp);
    if (at.pp > 0)
      send(rank, along(recipe, at, Axis::kPp, recipe.pp, -1), Axis::kPp, hidden_message * micro_batches * recipe.vpp);
    if (dp.replicas > 1) {
      // A ring of consecutive data ranks holds the states, and one of their counterparts in all such groups sums over replicas.
      const std::int64_t place = data_place(recipe, at), first = place / dp.ranks * dp.ranks;
      send(rank, rank_of(recipe, at_data_place(recipe, at, first + (place - first + 1) % dp.ranks)), Axis::kDp, dp_bytes);
      send(rank, rank_of(recipe, at_data_place(recipe, at, (place + dp.ranks) % dp.data_ranks())), Axis::kDp, replica_bytes);
    } else if (dp.ranks > 1) {
      // The ring over dp*cp: along cp first, then on to the next dp rank.
      Coordinate next = at;
      next.cp = (at.cp + 1) % recipe.cp;
      if (next.cp == 0) next.dp = (at.dp + 1) % recipe.dp;
      send(rank, rank_of(recipe, next), Axis::kDp, dp_bytes);
    }
  }
}

std::vector<double> bytes_per_link(const ScreenContext& context, const Recipe& recipe, std::int64_t ranks,
                                   const std::function<std::int64_t(std::int64_t)>& gpu_of) {
  const Topology& topology = *context.cluster.topology;
  std::vector<double> bytes(topology.links().size(), 0.0);
  std::vector<std::int32_t> route;
  std::vector<std::size_t> ways;
  for_each_step_flow(context, recipe, ranks, [&](const StepFlow& flow) {
    double part = flow.bytes;
    if (flow.axis == Axis::kCp && context.rules.ring_pair_communicators) {
      topology.pair_routes_into(gpu_of(flow.from), gpu_of(flow.to), route, ways);
      part /= static_cast<double>(std::max<std::size_t>(1, ways.size()));
    } else {
      topology.route_into(gpu_of(flow.from), gpu_of(flow.to), route);
    }
    for (const std::int32_t link : route) bytes[static_cast<std::size_t>(link)] += part;
  });
  return bytes;
}

std::vector<LinkLoad> loads_of(const Topology& topology, const std::vector<double>& bytes) {
  std::vector<LinkLoad> loads;
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
  return loads;
}

std::vector<ClassLoad> class_loads(const Topology& topology, const std::vector<LinkLoad>& loads) {
  std::vector<ClassLoad> classes;
  for (const LinkClass link_class : {LinkClass::kNvlink, LinkClass::kXgmi, LinkClass::kPcie, LinkClass::kSocket, LinkClass::kNic,
                                     LinkClass::kSpine, LinkClass::kLocal})
    classes.push_back({link_class, {}, {}});
  std::map<std::pair<std::string_view, std::string_view>, LinkClass> known;
  for (const Link& link : topology.links()) {
    known.try_emplace({topology.vertices()[static_cast<std::size_t>(link.from)].name,
                       topology.vertices()[static_cast<std::size_t>(link.to)].name},
                      link.link_class);
  }
  for (const LinkLoad& load : loads) {
    const auto found = known.find({load.from, load.to});
    if (found == known.end()) continue;
    for (ClassLoad& entry : classes) {
      if (entry.link_class != found->second) continue;
      entry.bytes += load.bytes;
      entry.busiest = max(entry.busiest, load.busy);
    }
  }
  return classes;
}

}  // namespace cpfit
