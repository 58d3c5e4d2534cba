// The order in which a ring should visit GPUs: bottleneck first. The slowest hop is made as fast as it can be, then as few hops
// as possible are that slow, then the latencies of all hops add up to the least. Shares count every hop of the ring at once: two
// hops over one socket link halve it.
//
// Exact up to kExactRing members: every order is tried. Beyond, the widest next neighbour and then reversals of stretches until
// none helps: a good order, not provably the best.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/cluster/topology.h"

namespace cpfit {

inline constexpr std::size_t kExactRing = 8;

struct RingOrder {
  std::vector<std::int64_t> members;  // GPU indices, the first one given stays first
  BytesPerSecond slowest;             // share of the slowest hop; 0 when a pair has no route
  std::int32_t slowest_hops = 0;
  Seconds latency;     // sum over the hops
  bool exact = false;  // every order was tried
};

/// The ring as given, judged.
[[nodiscard]] RingOrder judge_ring_order(const Topology& topology, std::span<const std::int64_t> gpus);

/// The best ring over the GPUs (2 or more, different; our mistake otherwise: aborts). Of equals the given order, then the first
/// found.
[[nodiscard]] RingOrder order_ring(const Topology& topology, std::span<const std::int64_t> gpus);

}  // namespace cpfit
