// The topology graph: GPUs, NVSwitches, PCIe switches, CPU sockets, NICs, leaf and spine switches; directed links with a
// capacity, a latency and a link class. Boost.Graph underneath (topology.cpp only). Routes follow a written rule: fewest
// hops, then largest bottleneck, then, among equal-cost spines, the one at (source rail index) mod count.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
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
};

class Topology {
 public:
  struct Graph;  // Boost.Graph, private to topology.cpp
  Topology(std::vector<Vertex> vertices, std::vector<Link> links);
  ~Topology();
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

  [[nodiscard]] const std::vector<Vertex>& vertices() const { return vertices_; }
  [[nodiscard]] const std::vector<Link>& links() const { return links_; }
  [[nodiscard]] const std::vector<std::int32_t>& gpus() const { return gpus_; }  // vertex of each GPU, in rank order
  /// Link indices from GPU `a` to GPU `b` (indices into gpus()); empty when a == b or unreachable.
  [[nodiscard]] std::vector<std::int32_t> route(std::int64_t a, std::int64_t b) const;
  [[nodiscard]] bool reachable(std::int64_t a, std::int64_t b) const;

 private:
  std::vector<Vertex> vertices_;
  std::vector<Link> links_;
  std::vector<std::int32_t> gpus_;
  std::unique_ptr<Graph> graph_;
};

}  // namespace cpfit
