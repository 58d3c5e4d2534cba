// The screen: closed-form step time, memory and verdict of one recipe. Fast enough for every legal recipe: operator times are
// computed once per (micro-batch, tp, cp, ...) and reused; nothing here allocates per recipe beyond the candidate itself.
#pragma once

#include <cstdint>

#include "model/cluster/group_network.h"
#include "model/framework/rule_set.h"
#include "model/rates/rate_set.h"
#include "model/recipe/scenario.h"
#include "model/record/candidate.h"

namespace cpfit {

/// Everything that stays fixed while recipes are screened. References must outlive the context.
struct ScreenContext {
  const Architecture& model;
  const Cluster& cluster;
  const Training& training;
  const Requirements& requirements;
  const RuleSet& rules;
  const GpuRates& rates;
  const NetworkView& network;
};

/// Screens one legal recipe whose layout resolves. Pure.
[[nodiscard]] Candidate screen(const ScreenContext& context, const Recipe& recipe, const ResolvedLayout& layout);

}  // namespace cpfit
