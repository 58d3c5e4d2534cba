// The legal recipes of a search space judged by memory alone: what fits does not need the time of a step, nor a network.
#pragma once

#include <functional>

#include "model/memory/ledger.h"
#include "model/recipe/stage_layout.h"
#include "sim/plan/search_space.h"
#include "sim/plan/workbench.h"

namespace cpfit::ask {

/// What a memory judgement depends on beside the recipe. References must outlive it.
struct FitCase {
  const Scenario& scenario;  // its cluster counts: GPUs and GPUs per node; its topology is not read
  const Training& training;
  const RuleSet& rules;
};

/// Worst stage of one legal recipe whose layout resolves.
[[nodiscard]] MemoryVerdict fit_of(const FitCase& at, const Recipe& recipe, const ResolvedLayout& layout);

/// Every legal recipe of the axes, outer recipes first, until `visit` says false.
void for_each_legal(const FitCase& at, const Axes& axes, const std::function<bool(const Recipe&, const ResolvedLayout&)>& visit);

/// The axes of a scenario with the smallest micro-batch only: a larger one never needs less memory.
[[nodiscard]] Axes leanest_axes(const Scenario& scenario, const RuleSet& rules);

/// The same training with another sequence length and as many sequences per step; a longer pack holds more documents of the
/// same lengths.
[[nodiscard]] Training with_length(const Training& training, std::int64_t tokens);

/// `recipe` with another CP degree and dp making up `gpus`; the inner group of its exchange follows. None when the degrees do
/// not divide the GPUs.
[[nodiscard]] std::optional<Recipe> with_cp(const Recipe& recipe, std::int32_t cp, std::int64_t gpus);

}  // namespace cpfit::ask
