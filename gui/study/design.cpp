#include "gui/study/design.h"

#include <algorithm>

namespace cpfit::gui {

bool same_question(const Scenario& a, const Scenario& b) {
  return a.model == b.model && a.cluster.name == b.cluster.name && a.cluster.nodes == b.cluster.nodes &&
         a.cluster.gpu.name == b.cluster.gpu.name && a.cluster.topology == b.cluster.topology &&
         a.training.sequence == b.training.sequence && a.training.global_batch == b.training.global_batch;
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
