#include "model/rates/group_rate.h"

#include <algorithm>

#include "model/rates/gpu_rates.h"

namespace cpfit {

Rated message_time(const GpuRates& rates, const HopNetwork& hop, Bytes bytes) {
  return message_time(rates, hop.slowest, hop.rate, hop.latency, bytes, hop.nic_ports);
}

BytesPerSecond attained_inside(const GpuRates& rates, LinkClass link, BytesPerSecond rate, std::int64_t ranks) {
  const auto index = static_cast<std::size_t>(link);
  const RankLadder& ladder = rates.collective[index][static_cast<std::size_t>(CollectiveKind::kAllReduce)];
  if (ladder.count == 0) return rate * rates.link[index].curve.share;
  std::int32_t at = 0;
  while (at + 1 < ladder.count && ladder.curves[static_cast<std::size_t>(at)].ranks < ranks) ++at;
  const CollectiveCurve& curve = ladder.curves[static_cast<std::size_t>(at)];
  return rate * curve.pieces[static_cast<std::size_t>(curve.piece_count) - 1].bus_share;
}

bool crosses_two_domains(const GroupNetwork& group, CollectiveKind kind) {
  const bool over_nics = group.collective_link == LinkClass::kNic || group.collective_link == LinkClass::kSpine;
  return kind == CollectiveKind::kAllReduce && over_nics && !group.measured && group.domains == 2 && group.members_per_domain > 1;
}

BytesPerSecond bus_rate(const GpuRates& rates, const GroupNetwork& group, CollectiveKind kind) {
  if (kind == CollectiveKind::kAllToAll) return group.alltoall_rate;
  if (!crosses_two_domains(group, kind)) return group.collective_rate;
  const std::int64_t per_domain = group.members_per_domain;
  const BytesPerSecond inside = attained_inside(rates, group.inner_hop.slowest, group.inner_hop.rate, per_domain);
  return BytesPerSecond(two_domain_rate(group.collective_rate.value(), inside.value(), static_cast<double>(group.shape.size),
                                        static_cast<double>(per_domain)));
}

}  // namespace cpfit
