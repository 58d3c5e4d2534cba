// Sentences about candidates: how one differs from the control and whether CP made it fit, why the neighbours of the shipped
// recipe were not taken, which other levers would help.
#pragma once

#include <optional>
#include <vector>

#include "model/record/run.h"
#include "sim/plan/verdict.h"
#include "sim/plan/workbench.h"

namespace cpfit {

/// Fields besides the degrees that change memory: a fit won by them is never a gain of CP.
[[nodiscard]] bool is_policy_field(const std::string& field);

/// Fills differs and reasons of a candidate against the control. When the control does not fit and the candidate does although
/// its recompute, micro-batch, state sharding or precision differ, the candidate is evaluated again with the control's: if that
/// twin does not fit, the candidate fits only because of the change, and says so.
void annotate(Workbench& bench, const Training& training, const std::optional<Candidate>& control, Candidate& candidate);

/// Neighbours of the ship: the best recipe of every other CP degree under the same policy, and one step along each axis.
[[nodiscard]] std::vector<Neighbour> explain_neighbours(Workbench& bench, const Training& training,
                                                        const std::vector<Candidate>& candidates, const Candidate& ship);

/// Other levers, by gain: tried on `base`, the recipe nearest to feasible. Gains are seconds exposed or bytes, as a share of
/// what is missing.
[[nodiscard]] std::vector<Lever> rank_levers(Workbench& bench, const Training& training, const Candidate& base);

/// Fewer nodes that divide by a higher power of two, where they train faster than all of them do (`faster_than`; none: where all
/// of them can do nothing): 72 GPUs have a factor of 9 that degrees can rarely use.
[[nodiscard]] std::optional<Lever> idle_nodes(Workbench& bench, const Training& training, const Recompute& recompute,
                                              const std::optional<Seconds>& faster_than);

/// The same recipe with its ranks on other GPUs, where that saves at least a hundredth of the step (placed_study.h).
[[nodiscard]] std::optional<Lever> placed_better(Workbench& bench, const Training& training, const Candidate& base);

/// Beside a recipe that ships: what the search does not try, where it saves at least a hundredth of the step, the best first.
/// Ranks on other GPUs, full recompute of fewer layers, TP collectives behind products; then nodes that are better left idle.
[[nodiscard]] std::vector<Lever> ship_levers(Workbench& bench, const Training& training, const Candidate& ship);

}  // namespace cpfit
