// The second rung of the ladder: the recipes that a plan shows are simulated on the timeline, which sees what a closed form
// cannot (shared links, late peers, pipeline turns that do not line up). What it finds is said; which recipe ships stays the
// screen's choice, so that a person sees both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "model/record/run.h"
#include "sim/plan/workbench.h"

namespace cpfit {

/// A step in the millions of activities takes seconds: these keep a plan fast whatever it finds, and the same on every machine.
struct ConfirmLimits {
  std::size_t recipes = 8;
  std::int64_t activities = 4'000'000;           // of one recipe
  std::int64_t activities_together = 1'500'000;  // of all; the first, the ship, is simulated all the same
};

/// Simulates ship, control and the best of the ranking, in parallel, and fills result.confirmations. The ship is judged again by
/// its timeline: what it misses there is added to its reasons (and to those of its row in the ranking) and to the answer, as is a
/// change of order beyond kAgreement among recipes that could ship. Deterministic.
void confirm(Workbench& bench, const Training& training, const ConfirmLimits& limits, PlanResult& result);

/// Two confirmed recipes that the timeline puts the other way round, beyond `bound`: one sentence on the pair that differs most;
/// empty when the order stays.
[[nodiscard]] std::string changed_order(const std::vector<TimelineConfirmation>& confirmations, double bound);

}  // namespace cpfit
