// The bus rate of a group's collectives, from what its network gives and what NCCL makes of it.
#pragma once

#include "model/cluster/group_network.h"
#include "model/rates/rate_set.h"

namespace cpfit {

/// How much more than a flat ring's bus rate an all-reduce over two domains has, `ranks` in all: trees pass the NICs of a domain
/// once each way, the buffer S, where the ring passes 2 (n-1)/n S. From three domains on some domain of every tree sends twice,
/// and nothing is left of it (tuning.cc of NCCL: "nNodes <= 2 ? bwIntra : bwInter"; NVIDIA/nccl-tests#196).
[[nodiscard]] constexpr double two_domain_gain(double ranks) { return 2 * (ranks - 1) / ranks; }

/// Bus rate that an all-reduce of `ranks` in two domains of `per_domain` members can have, bytes/s: `nics` is the ring's rate
/// over the NICs, `inside` what an all-reduce attains within a domain. The curves between nodes are shares of this.
[[nodiscard]] constexpr double two_domain_rate(double nics, double inside, double ranks, double per_domain) {
  const double crossing = nics * two_domain_gain(ranks);
  const double reduced = inside * two_domain_gain(ranks) / two_domain_gain(per_domain);
  return crossing < reduced ? crossing : reduced;
}

/// One message over a hop.
[[nodiscard]] Rated message_time(const GpuRates& rates, const HopNetwork& hop, Bytes bytes);

/// Bus rate that an all-reduce of large buffers attains over `ranks` inside a domain; `rate` is the raw rate of the link.
[[nodiscard]] BytesPerSecond attained_inside(const GpuRates& rates, LinkClass link, BytesPerSecond rate, std::int64_t ranks);

/// Does this collective pass the NICs by trees of two domains?
[[nodiscard]] bool crosses_two_domains(const GroupNetwork& group, CollectiveKind kind);

/// What `collective_time` wants as rate for a collective of `kind` over the group.
[[nodiscard]] BytesPerSecond bus_rate(const GpuRates& rates, const GroupNetwork& group, CollectiveKind kind);

}  // namespace cpfit
