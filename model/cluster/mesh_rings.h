// Rings over GPUs that links join pairwise, without a switch. NCCL closes as many rings as the links give, each over one lane of
// every link that it takes, and sends it round both ways (ncclTopoCompute in src/graph/search.cc). How many there are depends on
// which GPUs take part: a DGX-1 has six rings over all eight, four over seven, two over six. Private to model/cluster.
#pragma once

#include <cstddef>
#include <span>

namespace cpfit {

/// Members beyond which rings are not searched for.
inline constexpr std::size_t kMostMeshMembers = 8;

/// Bytes/s that the rings over all members move together; 0 where none closes. `width`: bytes/s from member a to member b,
/// (members, members), the same both ways, 0 where no link is. 3 to kMostMeshMembers members.
/// Where every pair is joined alike, all links work: as many one-way rings as there are links to the others.
[[nodiscard]] double mesh_ring_rate(std::span<const double> width, std::size_t members);

}  // namespace cpfit
