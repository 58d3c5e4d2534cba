// The topology graph: GPUs, NVSwitches, PCIe switches, CPU sockets, NICs, leaf and spine switches; directed links with a
// capacity, a latency and a link class. Boost.Graph underneath (topology_graph.h, included by topology*.cpp only).
//
// Routes follow a written rule, so that they are the same on every machine and in every run:
//   1. GPUs joined by scale-up links (NVLink, xGMI) use them: direct, through NVSwitches, or over one relaying GPU; fewest
//      hops, then largest bottleneck. They never leave for PCIe.
//   2. Otherwise, inside a host, PCIe switches and CPU sockets: fewest hops, then largest bottleneck. No GPU or NIC relays.
//   3. Otherwise GPU -> its NIC -> leaf [-> spine ... -> leaf] -> NIC -> GPU. A GPU's NIC is the nearest: fewest hops, largest
//      bottleneck, fewest GPUs served so far, lowest index. Fewest switch hops, largest bottleneck, and among equal switches
//      the one at (source rail index) mod count. Traffic between rails crosses the spine: PXN (a detour over the NVLink of a
//      peer on the right rail) is not modelled.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/quantity/units.h"

namespace cpfit {

enum class VertexKind : std::uint8_t { kGpu, kNvSwitch, kPcieSwitch, kCpu, kNic, kLeaf, kSpine };
enum class LinkClass : std::uint8_t {
  kNvlink,
  kXgmi,
  kPcie,
  kSocket,
  kNic /* NIC to leaf */,
  kSpine /* leaf to spine */,
  kLocal /* inside a host bridge */
};

struct Vertex {
  std::string name;  // "n0.gpu3", "n0.nic3", "leaf2"
  VertexKind kind;
  std::int32_t node = -1;  // host, -1 for fabric switches
  std::int32_t index = 0;  // of its kind within the host or fabric
  std::int32_t rail = -1;
};

struct Link {  // directed
  std::int32_t from = 0, to = 0;
  LinkClass link_class;
  BytesPerSecond capacity;  // of all parallel links together, one direction
  Seconds latency;
  std::int32_t lanes = 1;  // parallel physical links in `capacity`: 18 NVLinks, 4 bonded NICs
};

[[nodiscard]] constexpr bool is_scale_up(LinkClass link) { return link == LinkClass::kNvlink || link == LinkClass::kXgmi; }
[[nodiscard]] std::string_view name_of(VertexKind kind);  // "gpu", "nvswitch", "pcie_switch", "cpu", "nic", "leaf", "spine"
[[nodiscard]] std::string_view name_of(LinkClass link);   // "nvlink", "xgmi", "pcie", "socket", "nic", "spine", "local"

/// A cluster's graph. Immutable, safe to read from any thread. Link ends must name vertices, and `ranked` every GPU once (our
/// mistake otherwise: aborts). GPUs are ranked in the order of `ranked`; where it is empty, of `vertices`. Which NIC a GPU uses
/// does not depend on its rank.
class Topology {
 public:
  struct Graph;  // Boost.Graph, private to topology.cpp
  Topology(std::vector<Vertex> vertices, std::vector<Link> links, std::vector<std::int32_t> ranked = {});
  ~Topology();
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

  [[nodiscard]] const std::vector<Vertex>& vertices() const { return vertices_; }
  [[nodiscard]] const std::vector<Link>& links() const { return links_; }
  [[nodiscard]] const std::vector<std::int32_t>& gpus() const { return gpus_; }  // vertex of each GPU, in rank order
  /// Link indices from GPU `a` to GPU `b` (indices into gpus()); empty when a == b or unreachable.
  [[nodiscard]] std::vector<std::int32_t> route(std::int64_t a, std::int64_t b) const;
  /// The same, into `out` (cleared first): no allocation once `out` has grown. Below a microsecond at 16,384 GPUs.
  void route_into(std::int64_t a, std::int64_t b, std::vector<std::int32_t>& out) const;
  /// The ways of a message between two GPUs that have a communicator of their own, one behind the other in `links`, `ends` behind
  /// the last link of each; equal parts of it take them. More than one where it leaves the host over several equally near NICs:
  /// NCCL spreads its channels over as many of them as match the GPU's PCIe link (getLocalNetCountByBw and ncclTopoGetLocalNet
  /// in its src/graph). No way at all leaves both empty.
  void pair_routes_into(std::int64_t a, std::int64_t b, std::vector<std::int32_t>& links, std::vector<std::size_t>& ends) const;
  [[nodiscard]] bool reachable(std::int64_t a, std::int64_t b) const;

  /// Link indices between any two vertices of one host over PCIe and sockets only (rule 2); empty when there is no such path.
  [[nodiscard]] std::vector<std::int32_t> host_path(std::int32_t from, std::int32_t to) const;
  /// Vertex of the NIC that GPU `a` uses, and of the first leaf behind it; -1 when there is none.
  [[nodiscard]] std::int32_t nic_of(std::int64_t a) const;
  [[nodiscard]] std::int32_t leaf_of(std::int64_t a) const;
  /// Leaves that see the same switches above them have the same number (a pod of a fabric); -1 without a leaf.
  [[nodiscard]] std::int32_t pod_of(std::int64_t a) const;
  /// GPUs of one component joined by scale-up links have the same number.
  [[nodiscard]] std::int32_t scale_up_component(std::int64_t a) const;
  /// Every host has the same devices and links in the same order, ranked alike, and every leaf the same uplinks: symmetry may be
  /// used.
  [[nodiscard]] bool nodes_alike() const;

 private:
  std::vector<Vertex> vertices_;
  std::vector<Link> links_;
  std::vector<std::int32_t> gpus_;
  std::unique_ptr<Graph> graph_;
};

}  // namespace cpfit
