#include <fmt/format.h>

#include <algorithm>

#include "model/quantity/text.h"
#include "model/recipe/data_ranks.h"
#include "sim/plan/explain.h"
#include "sim/screen/layer_cost.h"

namespace cpfit {

bool is_policy_field(const std::string& field) {
  static const char* const kFields[] = {"recompute", "micro_batch", "state_sharding", "state_shards", "precision"};
  return std::any_of(std::begin(kFields), std::end(kFields), [&](const char* name) { return field == name; });
}

namespace {

/// Which surfaces are asked for shapes that nobody measured; their uncertainty is doubled there.
std::string outside_range(Workbench& bench, const Training& training, const Recipe& recipe) {
  bench.prepare(recipe);
  const LayerCost layer = layer_cost(bench.context(training), recipe);
  std::string surfaces;
  const auto add = [&](bool in_range, const char* name) {
    if (!in_range) surfaces += (surfaces.empty() ? "" : ", ") + std::string(name);
  };
  add(layer.gemm_in_range, "matrix products");
  add(layer.attention_in_range, "attention");
  add(layer.memory_in_range, "memory-bound operators");
  return fmt::format("shapes of {} lie outside what was measured on such a GPU: their uncertainty is widened", surfaces);
}

}  // namespace

void annotate(Workbench& bench, const Training& training, const std::optional<Candidate>& control, Candidate& candidate) {
  candidate.differs.clear();
  const Verdict verdict = judge_candidate(candidate, bench.scenario().requirements);
  if (!verdict.feasible()) candidate.reasons.push_back(verdict.sentence);
  if (!candidate.in_range) candidate.reasons.push_back(outside_range(bench, training, candidate.recipe));
  if (!control) return;
  candidate.differs = differences(control->recipe, candidate.recipe);
  if (candidate.verdict.fit != Fit::kFits || control->verdict.fit == Fit::kFits) return;

  std::vector<std::string> policy;
  for (const std::string& field : candidate.differs) {
    if (is_policy_field(field)) policy.push_back(field);
  }
  if (policy.empty()) return;
  Recipe twin = candidate.recipe;
  twin.recompute = control->recipe.recompute;
  twin.micro_batch = control->recipe.micro_batch;
  twin.state_sharding = control->recipe.state_sharding;
  twin.state_shards = control->recipe.state_shards;
  settle_state_shards(twin);
  twin.precision = control->recipe.precision;
  const Outcome<Candidate> same_policy = bench.evaluate(training, twin);
  std::string changed;
  for (const std::string& field : policy) changed += (changed.empty() ? "" : ", ") + field;
  if (!same_policy.ok()) {
    candidate.reasons.push_back(
        fmt::format("fits with a changed {}; with the control's the recipe is not legal: {}", changed, kNotAGainOfCp));
  } else if (same_policy->verdict.fit != Fit::kFits) {
    const Verdict miss = judge_candidate(*same_policy, bench.scenario().requirements);
    candidate.reasons.push_back(
        fmt::format("fits only because {} changed; with the control's, {}: {}", changed, miss.sentence, kNotAGainOfCp));
  }
}

}  // namespace cpfit
