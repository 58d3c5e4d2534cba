#include "model/cluster/device_order.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "model/cluster/topology.h"
#include "model/quantity/index.h"

namespace cpfit {
namespace {

Problem wrong_order(std::string message) {
  return {"cluster.device_order", "", std::move(message),
          "write each GPU of a host once, as in CUDA_VISIBLE_DEVICES: device_order = \"0,2,1,3\""};
}

bool names_each_once(std::vector<std::int32_t> order) {
  std::sort(order.begin(), order.end());
  for (std::size_t place = 0; place < order.size(); ++place) {
    if (order[place] != static_cast<std::int32_t>(place)) return false;
  }
  return true;
}

}  // namespace

Outcome<Cluster> with_device_orders(Cluster cluster, DeviceOrders orders) {
  for (const std::vector<std::int32_t>& order : orders) {
    if (std::ssize(order) != cluster.gpus_per_node || !names_each_once(order))
      return wrong_order(fmt::format("the device order {} does not name each of the {} GPUs of a host once",
                                     device_order_text(order), cluster.gpus_per_node));
  }
  if (std::ssize(orders) > cluster.nodes)
    return wrong_order(
        fmt::format("{} device orders for {} hosts: the last ones would never be used", orders.size(), cluster.nodes));
  const std::vector<Vertex>& vertices = cluster.topology->vertices();
  std::vector<std::int32_t> ranked;
  if (!orders.empty()) {
    std::vector<std::int32_t> numbered = cluster.topology->gpus();
    std::sort(numbered.begin(), numbered.end());
    const std::size_t each = at(cluster.gpus_per_node);
    if (numbered.size() % each != 0)
      return wrong_order(fmt::format("hosts of {} have not the same number of GPUs: no order holds for all", cluster.name));
    for (std::size_t rank = 0; rank < numbered.size(); ++rank) {
      const std::size_t host = rank / each;
      ranked.push_back(numbered[host * each + at(orders[host % orders.size()][rank % each])]);
    }
  }
  cluster.topology = std::make_shared<const Topology>(vertices, cluster.topology->links(), std::move(ranked));
  cluster.device_orders = std::move(orders);
  return cluster;
}

DeviceOrders shortest(const DeviceOrders& orders) {
  for (std::size_t period = 1; period < orders.size(); ++period) {
    bool repeats = orders.size() % period == 0;
    for (std::size_t host = period; repeats && host < orders.size(); ++host) repeats = orders[host] == orders[host - period];
    if (repeats) return {orders.begin(), orders.begin() + static_cast<std::ptrdiff_t>(period)};
  }
  return orders;
}

DeviceOrders composed(const DeviceOrders& first, const DeviceOrders& then) {
  if (first.empty()) return then;
  if (then.empty()) return first;
  DeviceOrders all(std::lcm(first.size(), then.size()));
  for (std::size_t host = 0; host < all.size(); ++host) {
    for (const std::int32_t place : then[host % then.size()]) all[host].push_back(first[host % first.size()][at(place)]);
  }
  return all;
}

Outcome<std::vector<std::int32_t>> parse_device_order(const std::string& text) {
  std::vector<std::int32_t> order;
  const char* next = text.data();
  const char* const end = next + text.size();
  for (;;) {
    while (next != end && *next == ' ') ++next;
    std::int32_t gpu = 0;
    const auto [behind, error] = std::from_chars(next, end, gpu);
    if (error != std::errc() || gpu < 0) break;
    order.push_back(gpu);
    next = behind;
    while (next != end && *next == ' ') ++next;
    if (next == end) return order;
    if (*next++ != ',') break;
  }
  return wrong_order(fmt::format("\"{}\" is no list of GPUs", text));
}

std::string device_order_text(const std::vector<std::int32_t>& order) { return fmt::format("{}", fmt::join(order, ",")); }

std::string devices_variable(const Cluster& cluster) {
  return cluster.gpu.vendor == "amd" ? "HIP_VISIBLE_DEVICES" : "CUDA_VISIBLE_DEVICES";
}

std::vector<std::string> device_lines(const Cluster& cluster, const DeviceOrders& orders) {
  constexpr std::int64_t kNamed = 8;  // nodes that are named one by one
  std::vector<std::string> lines;
  const std::size_t kinds = orders.size();
  const std::size_t nodes = cluster.nodes <= kNamed ? at(cluster.nodes) : kinds;
  for (std::size_t kind = 0; kind < std::min(kinds, nodes); ++kind) {
    std::vector<std::size_t> of_kind;
    for (std::size_t node = 0; node < nodes; ++node) {
      if (orders[node % kinds] == orders[kind]) of_kind.push_back(node);
    }
    if (of_kind.front() < kind) continue;  // listed already
    const std::string named = fmt::format("node{} {}", of_kind.size() > 1 ? "s" : "", fmt::join(of_kind, ", "));
    const std::string where = of_kind.size() == nodes   ? std::string("every node")
                              : cluster.nodes <= kNamed ? named
                                                        : fmt::format("{} of every {}", named, kinds);
    lines.push_back(fmt::format("{}={} on {}", devices_variable(cluster), device_order_text(orders[kind]), where));
  }
  return lines;
}

}  // namespace cpfit
