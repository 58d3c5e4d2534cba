// What a foreign file says about a cluster, before anything is assumed: one host with its devices and cables, a fabric of hosts
// and switches, or only an order of ranks. What the format does not hold stays empty here and is filled by complete.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "model/cluster/topology.h"
#include "model/quantity/units.h"

namespace cpfit {

enum class TopologyFormat : std::uint8_t {
  kUnknown,
  kOwn,             // cpfit-topology/1, topology_file.h
  kSmiTopo,         // nvidia-smi topo -m
  kSmiP2p,          // nvidia-smi topo -p2p: refused
  kRocmTopo,        // rocm-smi --showtopo, --showtopotype
  kNcclTopology,    // NCCL_TOPO_DUMP_FILE, RCCL too
  kNcclGraph,       // NCCL_GRAPH_DUMP_FILE
  kNcclLog,         // NCCL_DEBUG=INFO
  kHwloc,           // lstopo --of xml
  kSlurmConf,       // topology.conf
  kSlurmYaml,       // topology.yaml
  kTopographModel,  // topograph's simulation model: refused
  kIbnetdiscover,
  kGzip,    // any of these, compressed
  kBinary,  // holds NUL bytes
};

/// One device of a host. GPUs come first, in rank order, then NICs, then the rest.
struct ImportedDevice {
  VertexKind kind = VertexKind::kGpu;
  std::string label;                        // as the file calls it: "mlx5_3", "0000:0f:00.0"
  std::optional<BytesPerSecond> port_rate;  // NICs: all ports together, one direction
  std::int32_t ports = 1;
};

/// One cable inside a host, both ways. `rate` is of all lanes together, one direction; lanes 0: as many as the rate needs.
struct ImportedCable {
  std::int32_t a = 0, b = 0;  // devices
  LinkClass link_class = LinkClass::kPcie;
  std::optional<BytesPerSecond> rate;
  std::int32_t lanes = 1;
};

/// Two GPUs joined by that many NVLinks: through NVSwitches or directly, which the format does not say.
struct BondedPair {
  std::int32_t a = 0, b = 0, lanes = 1;  // devices
};

struct ImportedHost {
  std::vector<ImportedDevice> devices;
  std::vector<ImportedCable> cables;
  std::vector<BondedPair> bonded;
  bool scale_up_known = true;  // false: the format leaves NVLink to be found at run time
  std::string gpu;             // a name find_gpu knows; empty when the file gives no hint
  std::string gpu_reason;      // "PCI device 10de:2330", or what is known when no preset has it
  bool gpu_assumed = false;    // the hint fits other GPUs too
};

struct ImportedFabric {
  struct Port {
    std::int32_t fabric_switch = 0;
    std::optional<BytesPerSecond> rate;
    std::string label;  // "mlx5_5"
  };
  struct Host {
    std::string name;
    std::vector<Port> ports;  // in the order of the host's NICs
  };
  struct Switch {
    std::string name;
    bool leaf = false;  // a host hangs on it
  };
  struct Trunk {
    std::int32_t a = 0, b = 0;           // switches, both ways
    std::optional<BytesPerSecond> rate;  // all cables together
    std::int32_t lanes = 1;
  };
  std::vector<Host> hosts;
  std::vector<Switch> switches;
  std::vector<Trunk> trunks;
  std::vector<std::vector<std::int32_t>> blocks;  // hosts that may share one NVLink domain
  bool ports_counted = false;                     // false: one port stands for all NICs of the host
};

struct ImportedOrder {
  struct Ring {
    std::string name;  // "channel 0"
    std::vector<std::string> members;
  };
  std::vector<Ring> rings;
  std::vector<std::pair<std::string, std::int64_t>> transports;  // "P2P/CUMEM", how many connections
};

struct ImportedTopology {
  TopologyFormat format = TopologyFormat::kUnknown;
  std::string where;    // file name for messages
  std::string summary;  // what the file holds, one sentence without a full stop
  std::vector<std::string> notes;
  std::variant<ImportedHost, ImportedFabric, ImportedOrder> holds;
};

}  // namespace cpfit
