// Who sends how much to whom in one optimizer step under a recipe: one list of flows between ranks that the link loads, the
// pricing of placements and their tests all read. Collectives are counted as rings in rank order, all-to-alls pairwise.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "model/cluster/topology.h"
#include "model/record/run.h"
#include "sim/screen/screen.h"

namespace cpfit {

struct StepFlow {
  std::int64_t from = 0, to = 0;  // ranks of the recipe's rank order
  Axis axis = Axis::kTp;          // whose traffic; kDp is the gradients' group, dp*cp
  double bytes = 0;               // per optimizer step, above zero
};

/// Calls `visit` for every flow that leaves ranks 0 .. min(world, ranks) - 1, in a fixed order; mean stage and micro-batches of
/// the context's training. Flows of a rank to itself are left out.
void for_each_step_flow(const ScreenContext& context, const Recipe& recipe, std::int64_t ranks,
                        const std::function<void(const StepFlow&)>& visit);

/// Bytes per directed link: (links). `gpu_of(rank)` places a rank on a GPU of the topology.
[[nodiscard]] std::vector<double> bytes_per_link(const ScreenContext& context, const Recipe& recipe, std::int64_t ranks,
                                                 const std::function<std::int64_t(std::int64_t)>& gpu_of);

/// The links that carry something with their busy time, busiest first, of equals in the order of the topology: (links used).
[[nodiscard]] std::vector<LinkLoad> loads_of(const Topology& topology, const std::vector<double>& bytes);

/// What all links of one class carry together, and how long the busiest of them is busy.
struct ClassLoad {
  LinkClass link_class = LinkClass::kNvlink;
  Bytes bytes;
  Seconds busiest;
};
/// One entry per link class, in the order of the enumeration. `loads` names links of `topology`.
[[nodiscard]] std::vector<ClassLoad> class_loads(const Topology& topology, const std::vector<LinkLoad>& loads);

}  // namespace cpfit
