// A study as one HTML file: verdict, recipe against control, memory, lengths, the step on the timeline, links, neighbours,
// provenance. Opens anywhere without a network; holds no script.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/recipe/scenario.h"
#include "model/record/lane.h"
#include "model/record/run.h"
#include "sim/plan/lengths.h"

namespace cpfit::report {

/// What a report shows. `lanes` of the rank that ends last; why there are none otherwise.
struct ReportContent {
  const Scenario* scenario = nullptr;  // must outlive it
  PlanResult plan;
  std::vector<SweepPointOrReason> sweep;  // around the shipped recipe (or the nearest): cp by sequence length
  std::vector<SpanLane> lanes;
  std::int64_t step = 0;  // picoseconds, of the timeline
  std::string no_lanes;
  std::string proof;                  // one line on the recipe's attention
  std::string rates;                  // one line on the calibration; empty: the defaults
  std::vector<std::string> beware;    // sentences on what it does not cover
  std::vector<std::string> commands;  // that show more of it
};

[[nodiscard]] std::string report_page(const ReportContent& content);

}  // namespace cpfit::report
