// The order in which a job's ranks take the GPUs of a host: CUDA_VISIBLE_DEVICES of the launcher. Rank r runs on host
// r / gpus_per_node, on the GPU that the host's order names at place r % gpus_per_node. Host n takes order n % orders.size(), so
// that orders may alternate.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/cluster/cluster.h"

namespace cpfit {

/// The same hardware with ranks on its GPUs in these orders (each a permutation of 0 .. gpus_per_node - 1; none: as numbered),
/// whatever orders it had before. Problem "cluster.device_order".
[[nodiscard]] Outcome<Cluster> with_device_orders(Cluster cluster, DeviceOrders orders);

/// Orders that repeat, said once: the shortest list with the same order for every host of a cluster that the list covers evenly.
[[nodiscard]] DeviceOrders shortest(const DeviceOrders& orders);

/// `then` permutes the places of `first`: what the ranks take when they are ordered by `then` on a cluster ordered by `first`.
[[nodiscard]] DeviceOrders composed(const DeviceOrders& first, const DeviceOrders& then);

/// "0,2,1,3" as a scenario and CUDA_VISIBLE_DEVICES write it. Problem "cluster.device_order".
[[nodiscard]] Outcome<std::vector<std::int32_t>> parse_device_order(const std::string& text);
[[nodiscard]] std::string device_order_text(const std::vector<std::int32_t>& order);

/// "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES" for AMD.
[[nodiscard]] std::string devices_variable(const Cluster& cluster);
/// "CUDA_VISIBLE_DEVICES=0,2,1,3 on every node", one line per different order; empty for no orders.
[[nodiscard]] std::vector<std::string> device_lines(const Cluster& cluster, const DeviceOrders& orders);

}  // namespace cpfit
