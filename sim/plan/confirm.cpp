#include "sim/plan/confirm.h"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "model/quantity/percent.h"
#include "model/quantity/text.h"
#include "sim/plan/step_timeline.h"
#include "sim/plan/verdict.h"
#include "sim/schedule/step_size.h"

namespace cpfit {

namespace {

struct Shortlisted {
  Candidate candidate;
  TimelineConfirmation confirmation;
  Verdict verdict;  // by the timeline
};

std::string about(std::int64_t activities) {
  return fmt::format("about {:.1f} million activities", static_cast<double>(activities) / 1e6);
}

std::vector<Shortlisted> shortlist(const ScreenContext& context, const ConfirmLimits& limits, const PlanResult& result) {
  std::vector<Shortlisted> list;
  std::int64_t together = 0;
  const auto add = [&](const Candidate& candidate) {
    const auto same = [&](const Shortlisted& other) { return other.candidate.recipe == candidate.recipe; };
    if (list.size() >= limits.recipes || std::any_of(list.begin(), list.end(), same)) return;
    Shortlisted entry{candidate, {}, {}};
    TimelineConfirmation& confirmation = entry.confirmation;
    confirmation.recipe = to_text(candidate.recipe);
    confirmation.screen_step = candidate.time.step();
    confirmation.activities = schedule::estimated_activities(context, candidate.recipe, {});
    if (confirmation.activities > limits.activities) {
      confirmation.skipped = about(confirmation.activities) + ", too many for one recipe";
    } else if (!list.empty() && together + confirmation.activities > limits.activities_together) {
      confirmation.skipped = about(confirmation.activities) + ", too many beside those before it";
    } else {
      together += confirmation.activities;
    }
    list.push_back(std::move(entry));
  };
  if (result.ships) add(result.ship);
  if (result.has_control) add(result.control);
  for (const Candidate& candidate : result.candidates) add(candidate);
  return list;
}

/// `bench` is prepared for the recipe: only reads.
void simulate(Workbench& bench, const Training& training, Shortlisted& entry) {
  const Outcome<StepTimeline> timeline = step_timeline(bench, training, entry.candidate.recipe, {});
  TimelineConfirmation& confirmation = entry.confirmation;
  if (!timeline.ok()) {
    confirmation.skipped = to_text(timeline.problems().front());
    return;
  }
  const Candidate& simulated = timeline->candidate;
  confirmation.step = simulated.time.step();
  confirmation.exposed_cp = simulated.time.exposed_cp;
  confirmation.exposed_per_layer = simulated.cp.forward_exposed + simulated.cp.backward_exposed;
  confirmation.disagreement = disagreement(*timeline, kAgreement);
  confirmation.activities = static_cast<std::int64_t>(timeline->step->program.activities.size());
  entry.verdict = judge_candidate(simulated, bench.scenario().requirements);
}

std::string short_name(const std::string& text) {
  const Outcome<Recipe> recipe = parse_recipe(text, Recipe{});
  if (!recipe.ok()) return text;
  std::string name = fmt::format("cp={} x tp={} x pp={} x dp={}", recipe->cp, recipe->tp, recipe->pp, recipe->dp);
  if (recipe->cp > 1) name += fmt::format(" ({})", name_of(recipe->cp_comm));
  return name;
}

}  // namespace

std::string changed_order(const std::vector<TimelineConfirmation>& confirmations, double bound) {
  const TimelineConfirmation *first = nullptr, *second = nullptr;
  double most = bound;
  for (const TimelineConfirmation& a : confirmations) {
    for (const TimelineConfirmation& b : confirmations) {
      if (!a.simulated() || !b.simulated() || a.screen_step > b.screen_step) continue;
      const double turned = a.step / b.step - 1.0;
      if (turned <= most) continue;
      most = turned;
      first = &a;
      second = &b;
    }
  }
  if (first == nullptr) return {};
  return fmt::format(
      "On the timeline the order changes: {} takes {} there, {} less than {} ({}), which the screen puts before it.",
      short_name(second->recipe), print_time(second->step), print_share(1.0 - second->step / first->step),
      short_name(first->recipe), print_time(first->step));
}

void confirm(Workbench& bench, const Training& training, const ConfirmLimits& limits, PlanResult& result) {
  const ScreenContext context = bench.context(training);
  std::vector<Shortlisted> list = shortlist(context, limits, result);
  for (const Shortlisted& entry : list) bench.prepare(entry.candidate.recipe);
  tbb::parallel_for(std::size_t{0}, list.size(), [&](std::size_t i) {
    if (list[i].confirmation.simulated()) simulate(bench, training, list[i]);
  });
  for (const Shortlisted& entry : list) result.confirmations.push_back(entry.confirmation);
  if (list.empty()) return;
  std::string said;
  const Shortlisted& first = list.front();
  if (result.ships && first.confirmation.simulated()) {
    const double ratio = first.confirmation.step / first.confirmation.screen_step - 1.0;
    said = fmt::format(" The timeline {}: the ship takes {} per step there ({}).",
                       std::abs(ratio) <= kAgreement && first.verdict.feasible() ? "confirms this" : "differs",
                       print_time(first.confirmation.step), signed_percent(ratio));
    if (!first.verdict.feasible()) {
      const std::string reason = "on the timeline " + first.verdict.sentence;
      result.ship.reasons.push_back(reason);
      for (Candidate& candidate : result.candidates) {
        if (candidate.recipe == result.ship.recipe) candidate.reasons.push_back(reason);
      }
      said += " It misses a requirement there: " + first.verdict.sentence + ".";
    }
  }
  if (result.ships && !first.confirmation.simulated())
    said = " The ship was not simulated on the timeline: " + first.confirmation.skipped + ".";
  // Among those that could ship: how others would run matters to nobody.
  std::vector<TimelineConfirmation> feasible;
  for (const Shortlisted& entry : list) {
    if (judge_candidate(entry.candidate, bench.scenario().requirements).feasible()) feasible.push_back(entry.confirmation);
  }
  if (const std::string order = changed_order(feasible, kAgreement); !order.empty()) said += " " + order;
  result.answer += said;
}

}  // namespace cpfit
