#include "sim/plan/placement_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "model/cluster/device_order.h"
#include "model/quantity/index.h"
#include "model/quantity/text.h"
#include "model/recipe/axis_fields.h"
#include "model/recipe/rank_grid.h"
#include "sim/plan/link_loads.h"
#include "sim/plan/step_flows.h"

namespace cpfit {

namespace {

/// "rank 7 -> 8 (rail 7 to 0 over spine, 50 GB/s, 690 us a message)".
std::string hop_text(const ScreenContext& context, const PlacedHop& hop) {
  return fmt::format("GPU {} -> {} ({}, {}, {} a message)", hop.from_gpu, hop.to_gpu,
                     route_text(*context.cluster.topology, hop.from_gpu, hop.to_gpu), print_rate(hop.network.rate),
                     print_time(hop.message));
}

/// CP bytes per optimizer step that pass a spine.
Bytes spine_bytes(const ScreenContext& context, const Recipe& recipe, const Placement& placement) {
  Recipe placed = recipe;
  placed.rank_order = placement.rank_order;
  const std::int64_t domain = domain_ranks(context.cluster);
  double sum = 0;
  for_each_step_flow(context, placed, kRoutedRanks, [&](const StepFlow& flow) {
    if (flow.axis != Axis::kCp) return;
    const FlowRoute route =
        flow_route(*context.cluster.topology, gpu_of(placement, domain, flow.from), gpu_of(placement, domain, flow.to));
    if (route.crosses_spine) sum += flow.bytes;
  });
  return Bytes(sum);
}

/// What varies faster than cp: "tp=2", "tp=2 with dp=4".
std::string before_cp(const Recipe& recipe, const RankOrder& order) {
  std::string text;
  for (const Axis axis : order.axes) {
    if (axis == Axis::kCp) break;
    const std::int32_t size = degree_of(recipe, axis);
    if (size > 1 || axis == Axis::kTp) text += fmt::format("{}{}={}", text.empty() ? "" : " with ", name_of(axis), size);
  }
  return text.empty() ? "nothing before cp" : text;
}

/// What a domain is called here: most are one host.
std::string place_name(const Cluster& cluster) {
  return domain_ranks(cluster) == cluster.gpus_per_node ? "node" : "scale-up domain";
}

}  // namespace

std::string placement_name(const Cluster& cluster, const Placement& placement, const RankOrder& usual, bool turned) {
  std::vector<std::string> parts;
  if (placement.rank_order != usual) parts.push_back("rank order " + to_text(placement.rank_order));
  if (!placement.gpu_orders.empty()) {
    const auto& first = placement.gpu_orders.front();
    const bool numbered = std::is_sorted(first.begin(), first.end());
    if (!numbered) parts.push_back(fmt::format("GPUs {}", fmt::join(first, ",")));
    if (turned) parts.push_back(fmt::format("every second {} backwards", place_name(cluster)));
  }
  return parts.empty() ? std::string(kUsualPlacement) : fmt::format("{}", fmt::join(parts, ", "));
}

DeviceOrders device_orders(const Cluster& cluster, const Placement& placement) {
  if (domain_ranks(cluster) != cluster.gpus_per_node) return {};
  return shortest(composed(cluster.device_orders, placement.gpu_orders));
}

bool avoids_slow_hop(const PlacementAdvice& advice) {
  if (!advice.better || advice.before.ring.empty() || advice.after.ring.empty()) return false;
  return advice.before.slowest.message > advice.after.slowest.message * kMuchFasterHop;
}

std::string advice_sentence(const ScreenContext& context, const Recipe& recipe, const PlacementAdvice& advice) {
  const PlacementPrice &before = advice.before, &after = advice.after;
  if (!advice.better) {
    return fmt::format("None of the {} other placements tried communicates sooner than {} ({} per layer and micro-batch).",
                       advice.tried - 1, before.placement.name, print_time(before.total()));
  }
  std::string text = fmt::format("With {} communication takes {} instead of {} per layer and micro-batch", after.placement.name,
                                 print_time(after.total()), print_time(before.total()));
  const double gain = 1.0 - after.total() / before.total();
  const Seconds saved = before.total() - after.total();
  if (gain >= 0.005)
    text += fmt::format(" (-{})", print_share(gain));
  else
    text += saved.value() > 0.0 ? fmt::format(" ({} less)", print_time(saved)) : " (the same)";
  if (!before.ring.empty() && !after.ring.empty()) {
    if (before.counts.cross_rail != after.counts.cross_rail) {
      text += fmt::format("; {} of {} CP hops cross from rail to rail instead of {}", after.counts.cross_rail, after.counts.hops,
                          before.counts.cross_rail);
      text += fmt::format(", which put {} per step on the spine instead of {}",
                          print_bytes(spine_bytes(context, recipe, after.placement)),
                          print_bytes(spine_bytes(context, recipe, before.placement)));
    }
    if (before.counts.cross_socket != after.counts.cross_socket) {
      text += fmt::format("; {} of {} CP hops cross the sockets instead of {}", after.counts.cross_socket, after.counts.hops,
                          before.counts.cross_socket);
    }
    text += fmt::format("; the slowest CP hop is {} instead of {}", hop_text(context, after.slowest),
                        hop_text(context, before.slowest));
  }
  return text + ".";
}

std::string rail_sentence(const ScreenContext& context, const Recipe& recipe, const PlacementPrice& price) {
  if (price.counts.leaving == 0) return {};
  const Topology& topology = *context.cluster.topology;
  const std::int64_t domain = domain_ranks(context.cluster);
  Recipe placed = recipe;
  placed.rank_order = price.placement.rank_order;
  const std::int64_t stride = group_shape(placed, Axis::kCp).stride;
  const bool fills = stride % domain == 0;
  const std::string faster = before_cp(recipe, price.placement.rank_order);
  const std::string place = place_name(context.cluster);
  const auto leaves =
      std::find_if(price.ring.begin(), price.ring.end(), [](const PlacedHop& hop) { return hop.route.crosses_node; });
  const auto crossing =
      std::find_if(price.ring.begin(), price.ring.end(), [](const PlacedHop& hop) { return hop.route.crosses_rail; });
  if (crossing != price.ring.end()) {
    const std::int64_t same_rail = crossing->to_gpu / domain * domain + crossing->from_gpu % domain;
    const Seconds longer = crossing->route.latency - flow_route(topology, crossing->from_gpu, same_rail).latency;
    const Bytes bytes = spine_bytes(context, recipe, price.placement);
    std::string text =
        fmt::format("{} {} the {} GPUs of a {}: the CP ring leaves one on GPU {} and enters the next on GPU {} ({})", faster,
                    fills ? "fills" : "does not fill", domain, place, crossing->from_gpu % domain, crossing->to_gpu % domain,
                    route_text(topology, crossing->from_gpu, crossing->to_gpu));
    text += fmt::format(". {} of {} hops cross rails: {} more latency a hop, {} a step over leaf-to-spine links",
                        price.counts.cross_rail, price.counts.hops, print_time(longer), print_bytes(bytes));
    return text + fmt::format(", {} a message at {}.", print_time(crossing->message), print_rate(crossing->network.rate));
  }
  if (leaves == price.ring.end()) return {};
  const auto rail = [&](std::int64_t gpu) {
    return topology.nic_of(gpu) < 0 ? -1 : topology.vertices()[at(topology.nic_of(gpu))].rail;
  };
  if (rail(leaves->from_gpu) != rail(leaves->to_gpu))
    return fmt::format(
        "The NICs of a {} meet on one leaf: a CP ring that leaves on GPU {} and enters on GPU {} pays nothing for it.", place,
        leaves->from_gpu % domain, leaves->to_gpu % domain);
  const std::string why = fills                                ? faster + " fills the " + place
                          : price.placement.gpu_orders.empty() ? "groups lie so that GPU numbers stay the same"
                                                               : "the GPU orders turn at the border";
  return fmt::format("{}: all {} CP hops between {}s stay on their rail.", why, price.counts.leaving, place);
}

}  // namespace cpfit
