#include "sim/plan/placed_study.h"

#include "model/cluster/device_order.h"
#include "sim/plan/placement_text.h"

namespace cpfit {

std::optional<PlacedStudy> better_placed(const Workbench& bench, const Recipe& recipe) {
  const Scenario& scenario = bench.scenario();
  if (recipe.world() > kPlacedBeside || recipe.world() > scenario.cluster.gpus()) return std::nullopt;
  PlacedStudy placed{scenario, recipe, optimise_placement(bench.context(scenario.training), recipe)};
  const Placement& placement = placed.advice.after.placement;
  DeviceOrders orders = device_orders(scenario.cluster, placement);
  if (!placed.advice.better || (orders.empty() && !placement.gpu_orders.empty())) return std::nullopt;
  Outcome<Cluster> cluster = with_device_orders(std::move(placed.scenario.cluster), std::move(orders));
  if (!cluster.ok()) return std::nullopt;
  placed.scenario.cluster = std::move(cluster).value();
  placed.recipe.rank_order = placement.rank_order;
  return placed;
}

}  // namespace cpfit
