#include "gui/topology/network_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "model/quantity/text.h"
#include "sim/plan/link_loads.h"
#include "sim/plan/placement_search.h"
#include "sim/plan/placement_text.h"

namespace cpfit::gui {

namespace {

/// Ranks up to which a better placement is looked for: milliseconds.
constexpr std::int64_t kAdvisedRanks = 512;

std::string ranks_text(const std::vector<std::int64_t>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size() && i < 9; ++i) text += (i > 0 ? " → " : "") + std::to_string(ranks[i]);
  return ranks.size() > 9 ? text + " → … → " + std::to_string(ranks.back()) : text;
}

void add_rings(NetworkPicture& picture) {
  const Topology& topology = picture.topology();
  if (picture.recipe.cp <= 1 || picture.recipe.world() > picture.cluster.gpus()) return;
  std::vector<std::vector<std::int64_t>> groups = process_groups(picture.recipe, Axis::kCp);
  if (groups.size() > kDrawnRings) groups.resize(kDrawnRings);
  std::vector<GpuFlow> flows;
  for (const std::vector<std::int64_t>& group : groups) {
    for (std::size_t i = 0; i < group.size(); ++i) flows.push_back({group[i], group[(i + 1) % group.size()]});
  }
  const std::vector<HopNetwork> hops = concurrent_hops(topology, flows);
  std::size_t at = 0;
  for (std::vector<std::int64_t>& group : groups) {
    RingPicture ring;
    for (std::size_t i = 0; i < group.size(); ++i, ++at) {
      ring.hops.push_back({flows[at].from, flows[at].to, hops[at], topology.route(flows[at].from, flows[at].to)});
    }
    ring.ranks = std::move(group);
    picture.rings.push_back(std::move(ring));
  }
}

std::string order_sentence(const NetworkPicture& picture) {
  if (picture.rings.empty()) return {};
  const RingPicture& ring = picture.rings.front();
  const std::int64_t stride = group_shape(picture.recipe, Axis::kCp).stride;
  std::string text = fmt::format("The first ring goes {}: ", ranks_text(ring.ranks));
  if (stride == 1) {
    text += "cp varies fastest in the rank order, so neighbours of a ring are neighbouring GPUs.";
  } else {
    text +=
        fmt::format("the rank order puts {} {} between neighbours of a ring, because what varies faster than cp lies between.",
                    stride - 1, stride == 2 ? "GPU" : "GPUs");
  }
  const RingHopPicture* slow = nullptr;
  const RingHopPicture* fast = nullptr;
  for (const RingHopPicture& hop : ring.hops) {
    if (slow == nullptr || hop.network.rate < slow->network.rate) slow = &hop;
    if (fast == nullptr || hop.network.rate > fast->network.rate) fast = &hop;
  }
  if (ring.leaving() == 0) {
    text += " No hop leaves its node.";
  } else {
    text +=
        fmt::format(" {} of its {} hops {} a node", ring.leaving(), ring.hops.size(), ring.leaving() == 1 ? "leaves" : "leave");
    text +=
        fmt::format(": rank {} to {} gets {} over {}", slow->from, slow->to, print_rate(slow->network.rate), slow->network.link);
    if (slow->network.flows > 1) text += fmt::format(", which {} flows share", slow->network.flows);
    if (fast->network.rate > slow->network.rate)
      text += fmt::format("; inside a node a hop gets {}", print_rate(fast->network.rate));
    text += ".";
  }
  return text;
}

}  // namespace

std::int64_t RingPicture::leaving() const {
  return std::count_if(hops.begin(), hops.end(), [](const RingHopPicture& hop) { return hop.network.crosses_node; });
}

std::string NetworkPicture::link_name(std::int32_t link) const {
  const Link& l = topology().links()[static_cast<std::size_t>(link)];
  return topology().vertices()[static_cast<std::size_t>(l.from)].name + " -> " +
         topology().vertices()[static_cast<std::size_t>(l.to)].name;
}

Outcome<Cluster> edited_cluster(const Cluster& cluster, const LinkEdits& edits) {
  std::vector<Link> links = cluster.topology->links();
  Problems problems;
  for (const auto& [index, edit] : edits) {
    if (index < 0 || static_cast<std::size_t>(index) >= links.size()) continue;  // of another cluster
    if (!(edit.capacity.value() > 0) || !std::isfinite(edit.capacity.value()))
      problems.push_back(
          {"topology.capacity", "capacity", "a link carries more than 0 GB/s", "for a dead link simulate with --link"});
    if (!(edit.latency.value() >= 0) || !std::isfinite(edit.latency.value()))
      problems.push_back({"topology.latency", "latency", "a latency is 0 or more", "write it as \"2 us\""});
    links[static_cast<std::size_t>(index)].capacity = edit.capacity;
    links[static_cast<std::size_t>(index)].latency = edit.latency;
  }
  if (!problems.empty()) return problems;
  Cluster changed = cluster;
  if (!edits.empty())
    changed.topology = std::make_shared<const Topology>(cluster.topology->vertices(), std::move(links), cluster.topology->gpus());
  return changed;
}

std::shared_ptr<const NetworkPicture> network_picture(const Cluster& cluster) {
  auto picture = std::make_shared<NetworkPicture>();
  picture->cluster = cluster;
  picture->links.resize(cluster.topology->links().size());
  return picture;
}

std::shared_ptr<const NetworkPicture> network_picture(const ScreenContext& context, const Recipe& recipe, Seconds step) {
  auto picture = std::make_shared<NetworkPicture>();
  picture->cluster = context.cluster;
  picture->recipe = recipe;
  picture->step = step;
  const Topology& topology = picture->topology();
  picture->links.resize(topology.links().size());
  const std::int64_t ranks = std::min<std::int64_t>({recipe.world(), kRoutedRanks, context.cluster.gpus()});
  if (recipe.world() > ranks)
    picture->note = fmt::format("Only what the first {} of {} ranks send is routed: nodes are alike.", ranks, recipe.world());
  std::vector<std::int32_t> route;
  for_each_step_flow(context, recipe, ranks, [&](const StepFlow& flow) {
    if (flow.to >= context.cluster.gpus()) return;
    picture->flows.push_back({flow.from, flow.to, flow.axis, flow.bytes});
    topology.route_into(flow.from, flow.to, route);
    for (const std::int32_t link : route) {
      LinkTraffic& traffic = picture->links[static_cast<std::size_t>(link)];
      traffic.bytes += flow.bytes;
      ++traffic.flows;
    }
  });
  for (std::size_t l = 0; l < picture->links.size(); ++l) {
    LinkTraffic& traffic = picture->links[l];
    if (step.value() > 0) traffic.share = traffic.bytes / topology.links()[l].capacity.value() / step.value();
    if (traffic.bytes > 0) picture->worst.push_back(static_cast<std::int32_t>(l));
  }
  std::stable_sort(picture->worst.begin(), picture->worst.end(), [&](std::int32_t a, std::int32_t b) {
    return picture->links[static_cast<std::size_t>(a)].share > picture->links[static_cast<std::size_t>(b)].share;
  });
  add_rings(*picture);
  picture->why_this_order = order_sentence(*picture);
  if (!picture->rings.empty() && recipe.world() <= kAdvisedRanks && recipe.world() <= context.cluster.gpus()) {
    const PlacementAdvice advice = optimise_placement(context, recipe);
    if (advice.better) {
      const Placement& placement = advice.after.placement;
      picture->why_this_order += " " + advice.sentence;
      DeviceOrders orders = device_orders(context.cluster, placement);
      // GPUs that would change hosts are the launcher's to place.
      if (placement.gpu_orders.empty() || !orders.empty()) picture->better = {placement.rank_order, std::move(orders)};
    }
  }
  return picture;
}

}  // namespace cpfit::gui
