#include "sim/ask/fit_space.h"

#include <algorithm>

#include "model/recipe/data_ranks.h"

namespace cpfit::ask {

MemoryVerdict fit_of(const FitCase& at, const Recipe& recipe, const ResolvedLayout& layout) {
  const MemoryCase memory{at.scenario.model, at.training, recipe, at.rules, at.scenario.cluster.gpu, layout};
  return judge(worst_stage_memory(memory), at.scenario.cluster.gpu, at.scenario.requirements.memory_margin_share,
               at.rules.reserved_spread);
}

void for_each_legal(const FitCase& at, const Axes& axes, const std::function<bool(const Recipe&, const ResolvedLayout&)>& visit) {
  LayoutCache layouts(at.scenario.model);
  bool going = true;
  for (const Recipe& outer : outer_recipes(at.scenario, axes)) {
    for_each_completion(at.scenario, at.rules, axes, outer, [&](const Recipe& recipe) {
      if (!going) return;
      const LegalityCase of = legality_case(at.scenario, at.rules, recipe);
      if (first_violation({of.model, at.training, of.recipe, of.rules, of.gpus, of.gpus_per_node, of.gpu, of.search_limits}) >= 0)
        return;
      if (const ResolvedLayout* layout = layouts.prepare(recipe); layout != nullptr) going = visit(recipe, *layout);
    });
    if (!going) return;
  }
}

Axes leanest_axes(const Scenario& scenario, const RuleSet& rules) {
  Axes axes = resolve_axes(scenario, rules);
  axes.micro_batch = {*std::min_element(axes.micro_batch.begin(), axes.micro_batch.end())};
  return axes;
}

Training with_length(const Training& training, std::int64_t tokens) {
  Training changed = training;
  changed.sequence = Tokens(tokens);
  const double ratio = static_cast<double>(tokens) / static_cast<double>(training.sequence.count());
  for (DocumentClass& documents : changed.mask.documents) documents.count *= ratio;
  return changed;
}

std::optional<Recipe> with_cp(const Recipe& recipe, std::int32_t cp, std::int64_t gpus) {
  const std::int64_t used = std::int64_t{recipe.tp} * cp * recipe.pp;
  if (used < 1 || gpus % used != 0) return std::nullopt;
  Recipe changed = recipe;
  changed.cp = cp;
  changed.dp = static_cast<std::int32_t>(gpus / used);
  settle_state_shards(changed);
  if (changed.cp_comm == CpComm::kA2a) changed.a2a_degree = cp;
  if (changed.cp_comm == CpComm::kA2aP2p && (cp <= changed.a2a_degree || cp % changed.a2a_degree != 0)) {
    changed.cp_comm = CpComm::kP2p;  // no ring is left around the inner group, or it does not divide
  }
  if (changed.cp_comm == CpComm::kDoubleRing && (cp <= changed.window || cp % changed.window != 0)) {
    changed.cp_comm = CpComm::kP2p;
  }
  if (changed.cp_comm != CpComm::kDoubleRing) changed.window = 1;
  if (changed.cp_comm == CpComm::kP2p || changed.cp_comm == CpComm::kAllGather) changed.a2a_degree = 1;
  return changed;
}

}  // namespace cpfit::ask
