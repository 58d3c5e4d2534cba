#include "cli/runs/controls.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/plan/verdict.h"

namespace cpfit::cli {

namespace {

/// Everything of the run with figures, those at equal GPUs first.
std::vector<const Candidate*> evaluated(const PlanResult& run) {
  std::vector<const Candidate*> found;
  if (run.has_control) found.push_back(&run.control);
  for (const Neighbour& neighbour : run.neighbours) {
    if (neighbour.candidate.time.step().value() > 0) found.push_back(&neighbour.candidate);  // illegal ones have no figures
  }
  for (const SweepPoint& point : run.sweep) found.push_back(&point.candidate);
  return found;
}

bool does_less(const Candidate& control, const Candidate& beside) {
  return control.tokens_per_second_per_gpu < beside.tokens_per_second_per_gpu;
}

/// Less done per GPU before more of the step exposed, equal GPUs before the sweep's, then the nearest larger degree.
bool shows_more(const Candidate& a, const Candidate& b, const Candidate& beside) {
  if (does_less(a, beside) != does_less(b, beside)) return does_less(a, beside);
  const bool equal_a = a.recipe.world() == beside.recipe.world(), equal_b = b.recipe.world() == beside.recipe.world();
  if (equal_a != equal_b) return equal_a;
  return a.recipe.cp < b.recipe.cp;
}

/// What is changed beside CP is no gain of CP: a control has the recompute policy and the precision of what it stands beside.
bool same_policy(const Recipe& a, const Recipe& b) { return a.recompute == b.recompute && a.precision == b.precision; }

/// The run's best recipe without CP, where it says something of this one.
const Candidate* without_cp(const PlanResult& run, const Candidate& beside) {
  return run.has_control && beside.recipe.cp > 1 && same_policy(run.control.recipe, beside.recipe) ? &run.control : nullptr;
}

bool same_but_for_cp(const Candidate& a, const Candidate& b) { return a.recipe.tp == b.recipe.tp && a.recipe.pp == b.recipe.pp; }

/// Of smaller degrees that die the same recipe with fewer ranks before others, then the larger degree, then the nearest to
/// fitting.
bool says_more(const Candidate& a, const Candidate& b, const Candidate& beside) {
  const bool same_a = same_but_for_cp(a, beside), same_b = same_but_for_cp(b, beside);
  if (same_a != same_b) return same_a;
  if (a.recipe.cp != b.recipe.cp) return a.recipe.cp > b.recipe.cp;
  return a.memory.device < b.memory.device;
}

/// Whoever asks what CP is for is answered with the best recipe without it. Only where that fits another one may die for it: the
/// same recipe with fewer ranks.
const Candidate* dead_control(const std::vector<const Candidate*>& all, const PlanResult& run, const Candidate& beside) {
  const Candidate* control = without_cp(run, beside);
  if (control != nullptr && control->verdict.fit != Fit::kFits) return control;
  const Candidate* best = nullptr;
  for (const Candidate* one : all) {
    if (one->recipe.cp >= beside.recipe.cp || one->verdict.fit != Fit::kOom || !same_policy(one->recipe, beside.recipe)) continue;
    if (control != nullptr && !same_but_for_cp(*one, beside)) continue;
    if (best == nullptr || says_more(*one, *best, beside)) best = one;
  }
  return best;
}

const Candidate* slow_control(const std::vector<const Candidate*>& all, const Candidate& beside) {
  const Candidate* best = nullptr;
  for (const Candidate* one : all) {
    if (one->recipe.cp <= beside.recipe.cp || one->verdict.fit == Fit::kOom || !same_policy(one->recipe, beside.recipe)) continue;
    if (!does_less(*one, beside) && exposed_cp_share(*one) <= exposed_cp_share(beside)) continue;
    if (best == nullptr || shows_more(*one, *best, beside)) best = one;
  }
  return best;
}

std::string why_nobody_dies(const PlanResult& run, const Candidate& beside) {
  if (beside.recipe.cp == 1) return "cp=1 is the smallest degree there is";
  if (without_cp(run, beside) != nullptr) {
    return fmt::format("cp=1 fits as well ({}): it is not memory that asks for context parallelism here",
                       to_text(run.control.recipe));
  }
  return fmt::format("no recipe of this run with cp below {} and the same recompute and precision runs out of memory",
                     beside.recipe.cp);
}

}  // namespace

ChosenControls choose_controls(const PlanResult& run, const Candidate& beside) {
  ChosenControls chosen;
  const std::vector<const Candidate*> all = evaluated(run);
  if (const Candidate* control = without_cp(run, beside); control != nullptr && control->verdict.fit == Fit::kFits)
    chosen.found.emplace_back("without_cp", control->recipe);
  if (const Candidate* dead = dead_control(all, run, beside); dead != nullptr)
    chosen.found.emplace_back(dead->verdict.fit == Fit::kOom ? "out_of_memory" : "no_margin", dead->recipe);
  else
    chosen.missing.emplace_back("out_of_memory", why_nobody_dies(run, beside));
  if (const Candidate* slow = slow_control(all, beside); slow != nullptr)
    chosen.found.emplace_back("slow", slow->recipe);
  else
    chosen.missing.emplace_back("slow", fmt::format("no recipe of this run with cp above {} and the same recompute and precision "
                                                    "is slower or exposes more of its traffic",
                                                    beside.recipe.cp));
  return chosen;
}

}  // namespace cpfit::cli
