#include "sim/plan/placement.h"

#include <algorithm>
#include <array>

#include "model/quantity/index.h"
#include "model/rates/group_rate.h"
#include "model/recipe/rank_grid.h"
#include "model/traffic/collective_traffic.h"
#include "model/traffic/cp_traffic.h"
#include "model/transformer/parameters.h"
#include "sim/plan/link_loads.h"
#include "sim/plan/step_flows.h"

namespace cpfit {

namespace {

using Groups = std::vector<std::vector<std::int64_t>>;

constexpr double kSameTime = 1e-6;  // relative: times closer than this are the same

Recipe with_order(const Recipe& recipe, const Placement& placement) {
  Recipe placed = recipe;
  placed.rank_order = placement.rank_order;
  return placed;
}

/// Groups cut into parts of `size`: neighbours, or members `stride` places apart.
Groups cut(const Groups& groups, std::int64_t size, std::int64_t stride) {
  Groups parts;
  for (const auto& group : groups) {
    const auto members = static_cast<std::int64_t>(group.size());
    for (std::int64_t base = 0; base < members; base += size * stride) {
      for (std::int64_t lane = 0; lane < stride; ++lane) {
        auto& part = parts.emplace_back();
        for (std::int64_t i = 0; i < size; ++i) part.push_back(group[at(base + lane + i * stride)]);
      }
    }
  }
  return parts;
}

/// Libraries order the members of a collective themselves; GPU order is what they find in a host.
Groups in_gpu_order(Groups groups) {
  for (auto& group : groups) std::sort(group.begin(), group.end());
  return groups;
}

/// The group whose hops are the ring: all of cp for the plain ring and for gathers, the outer level of a hierarchical one.
Groups ring_groups(const Recipe& recipe, const CpTraffic& cp, const Groups& all) {
  const bool exchange = cp.forward.exchanges > 0;
  if (exchange) return cp.ring > 1 ? cut(all, cp.ring, cp.inner) : Groups{};
  return recipe.cp > 1 ? all : Groups{};
}

/// Different pieces of network among the hops: rings of thousands of hops have a handful.
std::vector<HopNetwork> distinct(const std::vector<HopNetwork>& hops) {
  std::vector<HopNetwork> kinds;
  for (const HopNetwork& hop : hops) {
    const bool known = std::any_of(kinds.begin(), kinds.end(), [&](const HopNetwork& kind) {
      return kind.rate == hop.rate && kind.latency == hop.latency && kind.slowest == hop.slowest;
    });
    if (!known) kinds.push_back(hop);
  }
  return kinds;
}

class Pricing {
 public:
  Pricing(const ScreenContext& context, const Recipe& recipe, const Placement& placement)
      : context_(context),
        recipe_(with_order(recipe, placement)),
        placement_(placement),
        cp_(cp_traffic(context.model, context.training, recipe_, context.rules)) {}

  [[nodiscard]] PlacementPrice price() {
    PlacementPrice result;
    result.placement = placement_;
    result.kv_message = cp_tensors(context_.model, context_.training, recipe_, context_.rules).kv;
    add_context_parallel(result);
    result.tp = tensor_parallel();
    result.pp = pipeline();
    result.dp = data_parallel();
    return result;
  }

 private:
  [[nodiscard]] Groups groups(std::initializer_list<Axis> axes) const {
    return placed_groups(context_.cluster, recipe_, placement_, std::span(axes.begin(), axes.size()));
  }

  [[nodiscard]] Seconds message(const HopNetwork& hop, Bytes bytes, std::int32_t messages = 1) const {
    if (bytes.value() <= 0.0) return {};
    return message_time(context_.rates, hop, bytes / messages).time * messages;
  }

  [[nodiscard]] Seconds slowest(const std::vector<HopNetwork>& kinds, Bytes bytes, std::int32_t messages) const {
    Seconds longest;
    for (const HopNetwork& kind : kinds) longest = max(longest, message(kind, bytes, messages));
    return longest;
  }

  [[nodiscard]] Seconds collective(const GroupNetwork& group, CollectiveKind kind, Bytes bytes) const {
    if (bytes.value() <= 0.0 || group.shape.size <= 1) return {};
    return collective_time(context_.rates, kind, group.collective_link, bus_rate(context_.rates, group, kind), group.ring.latency,
                           group.shape.size, bytes, form_of_stride(group.shape.stride))
        .time;
  }

  void add_context_parallel(PlacementPrice& result) {
    if (recipe_.cp <= 1) return;
    const Groups all = groups({Axis::kCp});
    const Groups rings = ring_groups(recipe_, cp_, all);
    std::vector<HopNetwork> kinds;
    if (!rings.empty()) kinds = add_ring(result, rings);
    std::vector<HopNetwork> inner_kinds;
    const bool double_ring = recipe_.cp_comm == CpComm::kDoubleRing;
    if (double_ring) {
      kinds = distinct(hops_of(cut(all, cp_.ring, cp_.inner)));
      inner_kinds = distinct(hops_of(cut(all, cp_.inner, 1)));
    }
    GroupNetwork inner;
    if (cp_.forward.exchanges > 0) inner = price_members(context_.cluster, in_gpu_order(cut(all, cp_.inner, 1)), true);
    const bool gathers = cp_.forward.gather.value() > 0.0;
    GroupNetwork whole;
    if (gathers) whole = price_members(context_.cluster, in_gpu_order(all), false);
    for (const CpPhaseTraffic* phase : {&cp_.forward, &cp_.backward}) {
      result.cp += ring_seconds(*phase, kinds) +
                   slowest(inner_kinds, phase->inner_message, 1) * (phase->inner_hops * (double_ring ? cp_.ring : 0));
      if (phase->exchanges > 0)
        result.cp += collective(inner, CollectiveKind::kAllToAll, phase->exchange / phase->exchanges) * phase->exchanges;
      if (gathers) {
        result.cp += collective(whole, CollectiveKind::kAllGather, phase->gather) +
                     collective(whole, CollectiveKind::kReduceScatter, phase->scatter);
      }
    }
  }

  [[nodiscard]] Seconds ring_seconds(const CpPhaseTraffic& phase, const std::vector<HopNetwork>& kinds) const {
    Seconds time = slowest(kinds, phase.homecoming, 1);
    if (phase.ring_hops <= 0) return time;
    const std::int32_t each = phase.messages_per_hop;
    time += slowest(kinds, phase.first_message, each);
    if (phase.ring_hops > 1) time += slowest(kinds, phase.last_message, each);
    return time + slowest(kinds, phase.middle_message, each) * std::max(0, phase.ring_hops - 2);
  }

  [[nodiscard]] std::vector<HopNetwork> hops_of(const Groups& rings) const {
    return concurrent_hops(*context_.cluster.topology, flows_of(rings));
  }
  [[nodiscard]] static std::vector<GpuFlow> flows_of(const Groups& rings) {
    std::vector<GpuFlow> flows;
    for (const auto& ring : rings) {
      for (std::size_t i = 0; i < ring.size(); ++i) flows.push_back({ring[i], ring[(i + 1) % ring.size()]});
    }
    return flows;
  }

  /// Fills in hops, counts and the slowest; returns the different kinds of hop.
  std::vector<HopNetwork> add_ring(PlacementPrice& result, const Groups& rings) {
    const Topology& topology = *context_.cluster.topology;
    const std::vector<GpuFlow> flows = flows_of(rings);
    const std::vector<HopNetwork> hops = concurrent_hops(topology, flows);
    const std::vector<std::int64_t> ranks = ranks_of_rings();
    result.counts.rings = static_cast<std::int64_t>(rings.size());
    result.counts.hops = static_cast<std::int64_t>(hops.size());
    std::vector<Seconds> times;
    std::size_t worst = 0;
    for (std::size_t i = 0; i < hops.size(); ++i) {
      const FlowRoute route = flow_route(topology, flows[i].from, flows[i].to);
      result.counts.leaving += route.crosses_node ? 1 : 0;
      result.counts.cross_rail += route.crosses_rail ? 1 : 0;
      result.counts.cross_socket += route.crosses_socket ? 1 : 0;
      times.push_back(message(hops[i], result.kv_message));
      if (times[i] > times[worst] * (1.0 + kSameTime)) worst = i;
    }
    for (const Seconds time : times) result.counts.slowest += time >= times[worst] * (1.0 - kSameTime) ? 1 : 0;
    const auto placed_hop = [&](std::size_t i) {
      const std::size_t size = rings.front().size(), next = i % size + 1 == size ? i + 1 - size : i + 1;
      return PlacedHop{
          ranks[i], ranks[next], flows[i].from, flows[i].to, hops[i], flow_route(topology, flows[i].from, flows[i].to), times[i]};
    };
    for (std::size_t i = 0; i < rings.front().size(); ++i) result.ring.push_back(placed_hop(i));
    result.slowest = placed_hop(worst);
    return distinct(hops);
  }

  /// Ranks in the order of the members of all rings.
  [[nodiscard]] std::vector<std::int64_t> ranks_of_rings() const {
    const Groups rings = ring_groups(recipe_, cp_, process_groups(recipe_, Axis::kCp));
    std::vector<std::int64_t> ranks;
    for (const auto& ring : rings) ranks.insert(ranks.end(), ring.begin(), ring.end());
    return ranks;
  }

  [[nodiscard]] Seconds tensor_parallel() const {
    if (recipe_.tp <= 1) return {};
    const TpTraffic traffic = tp_traffic(context_.model, context_.training, recipe_);
    const GroupNetwork group = price_members(context_.cluster, in_gpu_order(groups({Axis::kTp})), false);
    return collective(group, CollectiveKind::kAllGather, traffic.gather) * (traffic.forward_gathers + traffic.backward_gathers) +
           collective(group, CollectiveKind::kReduceScatter, traffic.activation) *
               (traffic.forward_scatters + traffic.backward_scatters) +
           collective(group, CollectiveKind::kAllReduce, traffic.activation) *
               (traffic.forward_all_reduces + traffic.backward_all_reduces);
  }

  [[nodiscard]] double stage_layers() const { return static_cast<double>(context_.model.layers) / recipe_.pp; }

  /// One message forward and one backward per chunk; the way back over the same hops. The wrap-around from the last stage to the
  /// first carries nothing without interleaving.
  [[nodiscard]] Seconds pipeline() const {
    if (recipe_.pp <= 1) return {};
    std::vector<GpuFlow> flows;
    for (const auto& stages : groups({Axis::kPp})) {
      for (std::size_t i = 0; i < stages.size(); ++i) {
        if (i + 1 < stages.size() || recipe_.vpp > 1) flows.push_back({stages[i], stages[(i + 1) % stages.size()]});
      }
    }
    const std::vector<HopNetwork> kinds = distinct(concurrent_hops(*context_.cluster.topology, flows));
    const Bytes bytes = pp_message(context_.model, context_.training, recipe_, context_.rules);
    return slowest(kinds, bytes, 1) * (2.0 * recipe_.vpp / stage_layers());
  }

  [[nodiscard]] Seconds data_parallel() const {
    const double parameters = static_cast<double>(count_parameters(context_.model).total()) / recipe_.pp / recipe_.tp;
    const DpTraffic traffic = dp_traffic(parameters, context_.training, recipe_, context_.rules);
    if (traffic.data_ranks() <= 1) return {};
    const double micro_batches =
        static_cast<double>(context_.training.global_batch) / (static_cast<double>(recipe_.dp) * recipe_.micro_batch);
    // Groups that share one copy of the states are consecutive data ranks, their replicas as far apart as those are many.
    const Groups all = groups({Axis::kCp, Axis::kDp});
    const bool whole = traffic.replicas <= 1;
    const GroupNetwork group = price_members(context_.cluster, in_gpu_order(whole ? all : cut(all, traffic.ranks, 1)), false);
    Seconds reduce = collective(group, traffic.all_reduce ? CollectiveKind::kAllReduce : CollectiveKind::kReduceScatter,
                                traffic.reduce_scatter);
    if (!whole) {
      const Groups replicas = in_gpu_order(cut(all, traffic.replicas, traffic.ranks));
      reduce += collective(price_members(context_.cluster, replicas, false), CollectiveKind::kAllReduce, traffic.replica_reduce);
    }
    const Seconds gather = collective(group, CollectiveKind::kAllGather, traffic.all_gather);
    if (traffic.gathers_per_micro_batch > 0) return (gather * traffic.gathers_per_micro_batch + reduce) * (1.0 / stage_layers());
    return (gather + reduce) * (1.0 / (stage_layers() * micro_batches));
  }

  const ScreenContext& context_;
  Recipe recipe_;
  const Placement& placement_;
  CpTraffic cp_;
};

}  // namespace

std::int64_t gpu_of(const Placement& placement, std::int64_t domain, std::int64_t rank) {
  if (placement.gpu_orders.empty()) return rank;
  const std::int64_t index = rank / domain;
  const auto& order = placement.gpu_orders[at(index) % placement.gpu_orders.size()];
  return index * domain + order[at(rank % domain)];
}

std::vector<std::vector<std::int64_t>> placed_groups(const Cluster& cluster, const Recipe& recipe, const Placement& placement,
                                                     std::span<const Axis> axes) {
  Groups groups = process_groups(with_order(recipe, placement), axes);
  const std::int64_t domain = domain_ranks(cluster);
  for (auto& group : groups) {
    for (std::int64_t& member : group) member = gpu_of(placement, domain, member);
  }
  return groups;
}

PlacementPrice price_placement(const ScreenContext& context, const Recipe& recipe, const Placement& placement) {
  return Pricing(context, recipe, placement).price();
}

std::vector<LinkLoad> placed_links(const ScreenContext& context, const Recipe& recipe, const Placement& placement,
                                   std::size_t limit) {
  const std::int64_t domain = domain_ranks(context.cluster);
  const std::vector<double> bytes = bytes_per_link(context, with_order(recipe, placement), kRoutedRanks,
                                                   [&](std::int64_t rank) { return gpu_of(placement, domain, rank); });
  std::vector<LinkLoad> loads = loads_of(*context.cluster.topology, bytes);
  if (loads.size() > limit) loads.resize(limit);
  return loads;
}

bool cheaper(const PlacementPrice& a, const PlacementPrice& b) {
  if (a.total() < b.total() * (1.0 - kSameTime)) return true;
  if (b.total() < a.total() * (1.0 - kSameTime)) return false;
  const auto worth = [](const PlacementPrice& price) {
    return std::array{price.counts.cross_rail, price.counts.cross_socket, price.counts.slowest};
  };
  return worth(a) < worth(b);
}

}  // namespace cpfit
