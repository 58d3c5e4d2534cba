#include "sim/plan/link_loads.h"

#include "sim/plan/step_flows.h"

namespace cpfit {

std::vector<LinkLoad> link_loads(const ScreenContext& context, const Recipe& recipe, std::size_t limit) {
  const std::vector<double> bytes = bytes_per_link(context, recipe, kRoutedRanks, [](std::int64_t rank) { return rank; });
  std::vector<LinkLoad> loads = loads_of(*context.cluster.topology, bytes);
  if (loads.size() > limit) loads.resize(limit);
  return loads;
}

}  // namespace cpfit
