// How the ranks of a job share the GPUs of their nodes.
#pragma once

#include <cstdint>

#include "kernels/core/transport.h"

namespace cpfit::probe {

/// The ranks of this rank's node, and whether every node has a GPU for each of its ranks. Ranks of one node are those that name
/// their host alike, whatever launcher started them.
struct NodeShare {
  std::int32_t place = 0;  // among the node's ranks
  bool gpu_per_rank = true;
};

/// All ranks call it.
[[nodiscard]] NodeShare share_of_node(kernels::Transport& host);

}  // namespace cpfit::probe
