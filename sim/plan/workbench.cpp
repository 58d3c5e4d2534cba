#include "sim/plan/workbench.h"

namespace cpfit {

const ResolvedLayout* LayoutCache::prepare(const Recipe& recipe) {
  const Key key{recipe.pp, recipe.vpp, recipe.stage_layout};
  auto found = known_.find(key);
  if (found == known_.end()) {
    Outcome<ResolvedLayout> resolved = resolve_layout(*model_, recipe);
    std::optional<ResolvedLayout> value;
    if (resolved.ok()) value = std::move(resolved).value();
    found = known_.emplace(key, std::move(value)).first;
  }
  return found->second ? &*found->second : nullptr;
}

const ResolvedLayout* LayoutCache::find(const Recipe& recipe) const {
  const auto found = known_.find(Key{recipe.pp, recipe.vpp, recipe.stage_layout});
  return found == known_.end() || !found->second ? nullptr : &*found->second;
}

Workbench::Workbench(const Scenario& scenario, RuleSet rules, const GpuRates& rates)
    : scenario_(std::make_shared<const Scenario>(scenario)),
      rules_(std::make_shared<const RuleSet>(std::move(rules))),
      rates_(&rates),
      network_(std::make_shared<NetworkView>(scenario.cluster)) {}

Outcome<Workbench> Workbench::build(const Scenario& scenario, const RateSet& rates) {
  Outcome<RuleSet> rules = find_framework(scenario.base.framework);
  if (!rules) return rules.problems();
  return Workbench(scenario, std::move(rules).value(), rates.of(scenario.cluster.gpu));
}

ScreenContext Workbench::context(const Training& training) const {
  return ScreenContext{scenario_->model, scenario_->cluster, training, scenario_->requirements, *rules_, *rates_, *network_};
}

LegalityCase Workbench::legality(const Training& training, const Recipe& recipe) const {
  LegalityCase at = legality_case(*scenario_, *rules_, recipe);
  return LegalityCase{at.model, training, at.recipe, at.rules, at.gpus, at.gpus_per_node, at.gpu, at.search_limits};
}

Workbench Workbench::with(const Scenario& scenario) const { return Workbench(scenario, *rules_, *rates_); }

void Workbench::prepare(const Recipe& recipe) {
  const GroupShapes shapes = group_shapes(recipe);
  for (const GroupShape& shape : {shapes.tp, shapes.cp_ring, shapes.cp_inner, shapes.pp, shapes.dp, shapes.dp_replica})
    network_->prepare(shape);
}

Outcome<Candidate> Workbench::evaluate(const Training& training, const Recipe& recipe) {
  Problems broken = explain_violations(legality(training, recipe));
  if (!broken.empty()) return broken;
  Outcome<ResolvedLayout> layout = resolve_layout(scenario_->model, recipe);
  if (!layout) return layout.problems();
  prepare(recipe);
  return screen(context(training), recipe, *layout);
}

}  // namespace cpfit
