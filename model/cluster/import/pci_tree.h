// The PCI tree of one host, as NCCL's and hwloc's XML both give it, and the host that comes of it. Private to the importers.
//
// A bridge with one useful child is a port, not a switch: chains of ports become one cable at the rate of the slowest. Bridges
// with several stay: a switch, or a host bridge (joined to its CPU by a local link). What serves no GPU and no NIC is left out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/cluster/import/imported.h"

namespace cpfit {

struct PciNode {
  enum class Kind : std::uint8_t { kBridge, kHostBridge, kGpu, kNic };
  Kind kind = Kind::kBridge;
  std::int32_t parent = -1;  // node, -1: the CPU
  std::int32_t cpu = 0;
  std::string bus_id;
  std::string label;
  std::optional<BytesPerSecond> up;  // of the cable to the parent, one direction
  std::optional<BytesPerSecond> port_rate;
  std::int32_t ports = 1;
  std::int64_t number = -1;  // GPU or net number, when the file gives one: the order of ranks and rails
};

/// NVLinks of a GPU node: to another GPU node, to an NVSwitch by its name, or to a CPU.
struct ScaleUpEnd {
  std::int32_t gpu = 0;  // node
  enum class To : std::uint8_t { kGpu, kSwitch, kCpu } to = To::kGpu;
  std::int32_t other = -1;  // node or CPU
  std::string switch_name;  // kSwitch
  std::int32_t lanes = 1;   // 0: as many as the rate needs
  std::optional<BytesPerSecond> rate;
  bool xgmi = false;
};

struct PciTree {
  std::int32_t cpus = 0;
  std::vector<PciNode> nodes;
  std::vector<ScaleUpEnd> scale_up;                            // both ends of a cable may be listed
  std::vector<std::pair<std::int32_t, std::int32_t>> bridged;  // nodes joined besides the tree
  std::optional<BytesPerSecond> socket;                        // between CPUs
};

/// "0000:0f:00.0" as a number that orders; text that is no bus id comes last.
[[nodiscard]] std::uint64_t bus_order(const std::string& bus_id);
/// Data-sheet rate of a PCIe link, one direction: 8 GT/s x16 15.75 GB/s, 16: 31, 32: 63, 64: 121 (as the GPU presets have it).
[[nodiscard]] std::optional<BytesPerSecond> pcie_rate(double gigatransfers, std::int64_t width);
/// Between sockets, by NCCL's constants (topo.h): vendor "GenuineIntel" with model, "AuthenticAMD", arch "ppc64", "arm64".
[[nodiscard]] std::optional<BytesPerSecond> socket_rate(const std::string& arch, const std::string& vendor, std::int64_t family,
                                                        std::int64_t model);

[[nodiscard]] ImportedHost host_of(const PciTree& tree, std::vector<std::string>& notes);

}  // namespace cpfit
