// Steps worked out by hand for the tests of the timeline, in microseconds, and real ones of the examples.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gui/timeline/step_picture.h"
#include "gui/timeline/step_tracks.h"
#include "model/recipe/scenario.h"

namespace cpfit::gui::test {

inline constexpr std::int64_t kMicro = 1'000'000;  // picoseconds

inline LaneSpan span(std::int64_t start_us, std::int64_t end_us, SpanKind kind, std::int32_t name) {
  LaneSpan made;
  made.start = made.posted = start_us * kMicro;
  made.end = end_us * kMicro;
  made.kind = kind;
  made.name = name;
  made.layer = 0;
  made.micro_batch = 0;
  return made;
}

/// Two ranks in a ring of two steps. Both attend 0-100 and 130-230 us; what they send each other, 1 MB, runs 10-130 us: its last
/// 30 us keep both from computing. Names: 0 attention 0, 1 attention 1, 2 send kv 0.
inline Timeline two_ranks() {
  Timeline step;
  step.step = 230 * kMicro;
  step.names = {"attention 0", "attention 1", "send kv 0"};
  for (std::int32_t rank = 0; rank < 2; ++rank) {
    SpanLane compute{rank, "compute", {span(0, 100, SpanKind::kAttention, 0), span(130, 230, SpanKind::kAttention, 1)}};
    compute.spans[0].activity = rank;
    compute.spans[1].activity = 10 + rank;
    LaneSpan message = span(10, 130, SpanKind::kCp, 2);
    message.exposed = 30 * kMicro;
    message.bytes = 1e6;
    message.peer = 1 - rank;
    LaneSpan out = message, in = message;
    out.sends = true;
    out.activity = 20 + rank;
    in.activity = 20 + (1 - rank);
    step.lanes.push_back(std::move(compute));
    step.lanes.push_back({rank, "cp send", {out}});
    step.lanes.push_back({rank, "cp receive", {in}});
  }
  return step;
}

inline std::shared_ptr<const StepPicture> two_rank_picture() {
  return picture_of(two_ranks(), {{.node = 0, .rank = 0, .stage = 0}, {.node = 0, .rank = 1, .stage = 0}});
}

/// A lane of random spans and gaps, some of them of no length.
inline SpanLane random_lane(std::mt19937& random, std::size_t spans, std::int64_t longest) {
  SpanLane lane{0, "cp send", {}};
  std::int64_t at = 0;
  for (std::size_t i = 0; i < spans; ++i) {
    at += static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(longest));
    LaneSpan made;
    made.start = made.posted = at;
    at += static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(longest));
    made.end = at;
    made.kind = static_cast<SpanKind>(random() % kSpanKinds);
    made.exposed =
        random() % 3 == 0 ? static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(made.end - made.start + 1)) : 0;
    lane.spans.push_back(made);
  }
  return lane;
}

/// A step of an example, simulated.
struct RealStep {
  std::shared_ptr<const Scenario> scenario;
  std::shared_ptr<const RateSet> rates;
  std::shared_ptr<Workbench> bench;
  std::shared_ptr<const StepTimeline> step;
  std::shared_ptr<const StepPicture> picture;
};
inline RealStep real_step(const std::string& example, const std::string& recipe_text, bool every_rank = false) {
  RealStep real;
  Outcome<Scenario> scenario = load_scenario(std::string(CPFIT_SOURCE_DIR) + "/examples/" + example);
  for (const Problem& problem : scenario.problems()) ADD_FAILURE() << to_text(problem);
  if (!scenario.ok()) return real;
  real.scenario = std::make_shared<const Scenario>(std::move(scenario).value());
  real.rates = std::make_shared<const RateSet>(RateSet::defaults());
  Outcome<Workbench> bench = Workbench::build(*real.scenario, *real.rates);
  if (!bench.ok()) return real;
  real.bench = std::make_shared<Workbench>(std::move(bench).value());
  const Outcome<Recipe> recipe = parse_recipe(recipe_text, real.scenario->base);
  for (const Problem& problem : recipe.problems()) ADD_FAILURE() << to_text(problem);
  if (!recipe.ok()) return real;
  schedule::StepOptions options;
  options.every_rank = every_rank;
  Outcome<StepTimeline> step = step_timeline(*real.bench, real.scenario->training, *recipe, options);
  for (const Problem& problem : step.problems()) ADD_FAILURE() << to_text(problem);
  if (!step.ok()) return real;
  real.step = std::make_shared<const StepTimeline>(std::move(step).value());
  real.picture = picture_of(real.step, real.scenario->cluster.gpus_per_node);
  return real;
}

}  // namespace cpfit::gui::test
