// A cluster of which a job uses only some GPUs of one node; the others stay idle, and its links are theirs all the same.
#pragma once

#include <algorithm>

#include "model/cluster/cluster.h"

namespace cpfit {

/// The first `gpus` (1 to gpus_per_node) GPUs of the first node. It cannot be resized: more nodes of part of a node are no
/// cluster.
[[nodiscard]] inline Cluster part_of_node(Cluster cluster, std::int32_t gpus) {
  cluster.nodes = 1;
  cluster.gpus_per_node = gpus;
  cluster.scale_up_domain = std::min(cluster.scale_up_domain, gpus);
  cluster.resized = nullptr;
  return cluster;
}

}  // namespace cpfit
