// What a group of one member sees: it sends nothing, its rates are its device's own. Private to the pricing of groups.
#pragma once

#include "model/cluster/group_network.h"

namespace cpfit {

[[nodiscard]] inline GroupNetwork idle_network(const Cluster& cluster, GroupShape shape) {
  GroupNetwork network;
  network.shape = shape;
  const BytesPerSecond rate = cluster.gpu.scale_up.value() > 0 ? cluster.gpu.scale_up : cluster.gpu.pcie;
  network.ring.rate = network.inner_hop.rate = network.collective_rate = network.alltoall_rate = rate;
  network.ring.flows = network.inner_hop.flows = 0;
  network.pair_ring = network.ring;
  return network;
}

}  // namespace cpfit
