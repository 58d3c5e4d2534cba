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

/// Less done per GPU before more of the step exposed, then the nearest larger degree.
bool shows_more(const Candidate& a, const Candidate& b, const Candidate& beside) {
  if (does_less(a, beside) != does_less(b, beside)) return does_less(a, beside);
  return a.recipe.cp < b.recipe.cp;
}

}  // namespace

ChosenControls choose_controls(const PlanResult& run, const Candidate& beside) {
  ChosenControls chosen;
  const std::vector<const Candidate*> all = evaluated(run);
  const std::int32_t cp = beside.recipe.cp;
  const Candidate *dead = nullptr, *slow = nullptr;
  for (const Candidate* one : all) {
    // The control of the run has CP = 1 and comes first; else the nearest smaller degree says most.
    const bool smaller = one->recipe.cp < cp && one->verdict.fit == Fit::kOom;
    if (smaller && (dead == nullptr || (dead->recipe.cp != 1 && one->recipe.cp > dead->recipe.cp))) dead = one;
    const bool larger = one->recipe.cp > cp && one->verdict.fit != Fit::kOom &&
                        (does_less(*one, beside) || exposed_cp_share(*one) > exposed_cp_share(beside));
    if (larger && (slow == nullptr || shows_more(*one, *slow, beside))) slow = one;
  }
  if (dead != nullptr) {
    chosen.found.emplace_back("out_of_memory", dead->recipe);
  } else {
    chosen.missing.emplace_back("out_of_memory",
                                cp == 1 ? "cp=1 is the smallest degree there is"
                                        : fmt::format("no recipe of this run with cp below {} runs out of memory: it is not "
                                                      "memory that asks for context parallelism here",
                                                      cp));
  }
  if (slow != nullptr) {
    chosen.found.emplace_back("slow", slow->recipe);
  } else {
    chosen.missing.emplace_back(
        "slow", fmt::format("no recipe of this run with cp above {} is slower or exposes more of its traffic", cp));
  }
  return chosen;
}

}  // namespace cpfit::cli
