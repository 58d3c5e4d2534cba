#include "gui/study/design.h"

#include <algorithm>

#include "model/cluster/topology.h"

namespace cpfit::gui {

bool same_hardware(const Cluster& a, const Cluster& b) {
  if (a.name != b.name || a.nodes != b.nodes || a.gpus() != b.gpus() || a.gpu.name != b.gpu.name) return false;
  if (a.topology == b.topology) return true;
  if (a.topology == nullptr || b.topology == nullptr) return false;
  return std::ranges::equal(a.topology->vertices(), b.topology->vertices(), {}, &Vertex::name, &Vertex::name) &&
         std::ranges::equal(a.topology->links(), b.topology->links(), [](const Link& x, const Link& y) {
           return x.from == y.from && x.to == y.to && x.link_class == y.link_class && x.capacity == y.capacity &&
                  x.latency == y.latency && x.lanes == y.lanes;
         });
}

bool same_design(const Design& a, const Design& b) {
  return a.scenario == b.scenario && a.recipe == b.recipe && a.calibration == b.calibration;
}

bool same_question(const Scenario& a, const Scenario& b) {
  return a.model == b.model && same_hardware(a.cluster, b.cluster) && a.training.sequence == b.training.sequence &&
         a.training.global_batch == b.training.global_batch;
}

Recipe opening_recipe(const Scenario& scenario) {
  Recipe recipe = scenario.base;
  const std::int64_t gpus = scenario.cluster.gpus();
  if (recipe.world() == gpus) return recipe;
  std::int64_t rest = gpus;
  const auto take = [&](std::int64_t limit) {
    std::int64_t best = 1;
    for (std::int64_t d = 1; d <= std::min(rest, limit); ++d) {
      if (rest % d == 0) best = d;
    }
    rest /= best;
    return static_cast<std::int32_t>(best);
  };
  const std::int64_t widest = scenario.search.tp.empty()
                                  ? scenario.cluster.gpus_per_node
                                  : *std::max_element(scenario.search.tp.begin(), scenario.search.tp.end());
  recipe.tp = take(std::min<std::int64_t>({widest, scenario.cluster.gpus_per_node, scenario.model.kv_heads}));
  recipe.pp = 1;
  recipe.dp = take(std::max<std::int64_t>(1, scenario.training.global_batch / recipe.micro_batch));
  recipe.cp = static_cast<std::int32_t>(rest);
  return recipe;
}

}  // namespace cpfit::gui
