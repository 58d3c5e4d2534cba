// From evaluated candidates to a verdict: which recipe ships, what the CP=1 control does, and why every other CP degree does not.
//
// Rule. A candidate is *feasible* when it fits with margin, its exposed CP communication stays inside the budget, and it meets
// the minimum throughput. The fastest feasible candidate sets the pace; `ship` is the smallest CP degree whose feasible recipe
// is within the throughput tolerance of it (then the fastest, then the least memory). CP degrees are compared at the ship's
// recompute policy and precision: the control is the CP=1 recipe most favourable to CP=1 under that policy.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/recipe/scenario.h"
#include "model/record/candidate.h"
#include "model/record/run.h"

namespace cpfit {

/// Exposed CP communication as a share of the step.
[[nodiscard]] double exposed_cp_share(const Candidate& candidate);

/// The first requirement a candidate misses, as rule, amount, unit and sentence; empty rule when it is feasible.
struct Verdict {
  std::string rule;
  double amount = 0;
  std::string unit;
  std::string sentence;
  [[nodiscard]] bool feasible() const { return rule.empty(); }
};
[[nodiscard]] Verdict judge_candidate(const Candidate& candidate, const Requirements& requirements);

/// Ranking: feasible before infeasible, then step time, then device memory, then recipe text (deterministic).
[[nodiscard]] bool ranks_before(const Candidate& a, const Candidate& b, const Requirements& requirements);

/// Index of the recipe to ship, if any.
[[nodiscard]] std::optional<std::size_t> choose_ship(const std::vector<Candidate>& candidates, const Requirements& requirements);

/// Index of the control under a recompute policy and precision: CP = 1; the fastest that fits, else the one that needs least
/// memory.
[[nodiscard]] std::optional<std::size_t> choose_control(const std::vector<Candidate>& candidates,
                                                        const Requirements& requirements, const Recompute& recompute,
                                                        Precision precision);

/// The best candidate of one CP degree under a policy: feasible and fastest, else fitting, else least memory.
[[nodiscard]] std::optional<std::size_t> best_of_cp(const std::vector<Candidate>& candidates, const Requirements& requirements,
                                                    std::int32_t cp, const Recompute& recompute, Precision precision);

/// Pareto front of step time against device memory, fastest first.
[[nodiscard]] std::vector<std::size_t> pareto_front(const std::vector<Candidate>& candidates);

}  // namespace cpfit
