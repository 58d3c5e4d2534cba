// A topology as text: the matrix people know from nvidia-smi, the links, the ring of a group with the hop that crosses hosts, and
// the sentence that says when another placement would spare a slow hop. Pure functions: values first, then their lines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/cluster/cluster.h"
#include "model/cluster/group_network.h"
#include "model/cluster/topology.h"

namespace cpfit {

/// Codes between the GPUs and NICs of one host, computed from the graph:
///   X self, NV<n> n NVLinks (to a switch: all of the GPU's), XGMI<n>, PIX one PCIe switch, PXB several, PHB one
///   host bridge (a switch joined to a CPU by a local link), NODE one CPU, SYS several,
///   "-" no path. A relaying GPU is not shown (as nvidia-smi does not).
struct ConnectionMatrix {
  std::vector<std::string> names;               // "GPU0", "NIC0": n
  std::vector<std::vector<std::string>> codes;  // n x n
};
[[nodiscard]] ConnectionMatrix connection_matrix(const Topology& topology, std::int32_t node);
/// Wider matrices than 100 columns are printed in parts, one below the other.
[[nodiscard]] std::string print_matrix(const ConnectionMatrix& matrix);

/// Links that look alike, counted over the whole cluster.
struct TopologyLink {
  LinkClass link_class = LinkClass::kPcie;
  VertexKind from = VertexKind::kGpu, to = VertexKind::kGpu;
  BytesPerSecond capacity;  // of one, lanes together
  std::int32_t lanes = 1;
  Seconds latency;
  std::int64_t count = 0;  // directed links
  std::string example;     // "n0.gpu0 -> n0.nvsw0"
};
[[nodiscard]] std::vector<TopologyLink> link_table(const Topology& topology);
[[nodiscard]] std::string print_links(const std::vector<TopologyLink>& rows);

/// One line per hop of the ring of rank 0: ranks, share, slowest link and the flows on it, latency, route and "crosses nodes".
[[nodiscard]] std::string print_ring(const Cluster& cluster, GroupShape shape);

/// Other groups of the same tp and cp whose ring is faster.
struct RingAlternative {
  std::string name;  // "cp before tp", "tp=8 fills the domain"
  std::int32_t tp = 1, cp = 1;
  GroupShape ring, tensor;  // shapes of the cp ring and of the tp group
  BytesPerSecond ring_rate;
  BytesPerSecond tensor_rate;  // collective rate of the tp group under it
};

/// When the cp ring at stride `tp` has a hop much slower than the others: which, and what would avoid it. Nothing when every hop
/// is alike. Alternatives: cp as the fastest axis, and a smaller tp that keeps tp * cp inside the domain (same GPUs, more dp).
struct RingWarning {
  HopNetwork slow, usual;  // the worst hop, and the hop inside a domain
  std::vector<RingAlternative> alternatives;
  std::string sentence;
};
[[nodiscard]] std::optional<RingWarning> ring_warning(const Cluster& cluster, std::int32_t tp, std::int32_t cp);

}  // namespace cpfit
