// A study computed for its report: the plan, what it shows around the recipe that ships, and that recipe's step on the timeline.
#pragma once

#include <string>

#include "model/rates/rate_set.h"
#include "sim/plan/search.h"
#include "sim/report/report_page.h"

namespace cpfit::report {

/// `named`: the scenario as a command line names it. `scenario` must outlive what is returned, whose proof and rates are left
/// empty. Problems: unknown rule set. Told to stop it returns soon, with what it has.
[[nodiscard]] Outcome<ReportContent> study_report(const Scenario& scenario, const RateSet& rates, const std::string& named,
                                                  const SearchControls& controls);

/// What the report is about: the recipe that ships, else the best of the ranking; none where nothing is legal.
[[nodiscard]] const Recipe* recipe_of(const PlanResult& plan);

}  // namespace cpfit::report
