// The planner: scenario in, verdict out, with its evidence.
#pragma once

#include <string>

#include "model/record/run.h"
#include "sim/plan/confirm.h"
#include "sim/plan/search.h"

namespace cpfit {

struct PlanOptions {
  std::size_t top = 10;   // candidates kept in the answer
  bool crossover = true;  // search the crossover lengths
  bool timeline = true;   // confirm the shortlist on the timeline
  ConfirmLimits confirm;
  SearchControls controls;
};

/// Plans. `provenance` is filled by the caller as far as it knows (hashes); the planner adds scenario, rule set and rates.
/// Problems: unknown rule set. An empty space or nothing feasible is a result, not a problem.
[[nodiscard]] Outcome<PlanResult> plan(const Scenario& scenario, const RateSet& rates, const PlanOptions& options);

}  // namespace cpfit
