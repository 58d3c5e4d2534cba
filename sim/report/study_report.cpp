#include "sim/report/study_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/plan/plan.h"
#include "sim/plan/step_timeline.h"
#include "sim/schedule/step_size.h"
#include "sim/timeline/exposure.h"
#include "sim/timeline/lanes.h"

namespace cpfit::report {

namespace {

constexpr std::int64_t kLargestProgram = 16'000'000;  // activities; about 2.5 GB

/// Lengths around the study's own: an eighth to four times, but 4k tokens at least and 4M at most.
std::vector<std::int64_t> lengths_around(std::int64_t tokens) {
  constexpr std::int64_t kShortest = 4096, kLongest = std::int64_t{1} << 22;
  return length_ladder(std::max(kShortest, tokens / 8), std::max(kShortest, std::min(kLongest, 4 * tokens)), 1, 1);
}

/// The lanes of the rank that ends last, or why there are none.
void add_lanes(const Scenario& scenario, const RateSet& rates, const std::string& named, const Recipe& recipe,
               ReportContent& content) {
  Outcome<Workbench> bench = Workbench::build(scenario, rates);
  const Outcome<Candidate> screened =  // prepares the network
      bench.ok() ? bench.value().evaluate(scenario.training, recipe) : Outcome<Candidate>(bench.problems());
  if (!screened.ok()) {
    content.no_lanes = screened.problems().front().message;
    return;
  }
  const std::int64_t size = schedule::estimated_activities(bench.value().context(scenario.training), recipe, {});
  if (size > kLargestProgram) {
    content.no_lanes = fmt::format("the step would have about {} million activities, more than {} million", size / 1'000'000,
                                   kLargestProgram / 1'000'000);
    return;
  }
  const Outcome<StepTimeline> step = step_timeline(bench.value(), scenario.training, recipe, {});
  if (!step.ok()) {
    content.no_lanes = step.problems().front().message;
    return;
  }
  Timeline lanes = timeline::timeline_of(step->history());
  for (const timeline::RankAnswer& rank : step->answer.ranks) timeline::mark_exposed(lanes, rank);
  content.step = lanes.step;
  for (SpanLane& lane : lanes.lanes) {
    if (lane.rank == step->answer.rank) content.lanes.push_back(std::move(lane));
  }
  content.commands.push_back(fmt::format("cpfit simulate {} --fidelity timeline --trace step.json --recipe \"{}\"", named,
                                         to_text(recipe, scenario.base)));
}

}  // namespace

const Recipe* recipe_of(const PlanResult& plan) {
  if (plan.ships) return &plan.ship.recipe;
  return plan.candidates.empty() ? nullptr : &plan.candidates.front().recipe;
}

Outcome<ReportContent> study_report(const Scenario& scenario, const RateSet& rates, const std::string& named,
                                    const SearchControls& controls) {
  PlanOptions options;
  options.controls = controls;
  Outcome<PlanResult> planned = plan(scenario, rates, options);
  if (!planned.ok()) return planned.problems();
  ReportContent content;
  content.scenario = &scenario;
  content.plan = std::move(planned).value();
  content.commands.push_back(fmt::format("cpfit plan {}", named));
  const Recipe* recipe = recipe_of(content.plan);
  if (recipe == nullptr || (controls.stop != nullptr && controls.stop->load())) return content;
  Scenario around = scenario;
  around.base = *recipe;  // its framework decides which rules hold
  content.sweep = controlled_sweep(around, rates, *recipe, {1, 2, 4, 8, 16}, lengths_around(scenario.training.sequence.count()));
  add_lanes(scenario, rates, named, *recipe, content);
  return content;
}

}  // namespace cpfit::report
