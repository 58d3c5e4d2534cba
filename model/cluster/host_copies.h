// Copies between GPUs and the memory of their host, when every rank of a node copies at once: what an optimizer on the host waits
// for.
#pragma once

#include "model/cluster/topology.h"

namespace cpfit {

struct Cluster;

struct HostCopies {
  BytesPerSecond rate;  // of each GPU in one direction, raw; 0 where the topology draws no way to a CPU
  Seconds latency;      // sum of link latencies of the slowest way
  LinkClass slowest = LinkClass::kPcie;
};

/// The first `gpus` ranks copy to (or from) the nearest CPU of their host; the slowest share counts. Ranks beyond the first host
/// have hosts of their own.
[[nodiscard]] HostCopies host_copies(const Cluster& cluster, std::int64_t gpus);

}  // namespace cpfit
