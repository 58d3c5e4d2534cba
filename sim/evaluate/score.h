// Scores of predictions against measurements: the arithmetic alone.
#pragma once

#include <vector>

#include "model/memory/ledger.h"
#include "model/record/validation.h"

namespace cpfit {

/// One summary per metric that occurs, in the order of the enumeration. Errors are predicted/measured - 1; medians of an even
/// count are the mean of the middle two; coverage counts measured values inside [low, high].
[[nodiscard]] std::vector<MetricSummary> summarize(const std::vector<ValidationRow>& rows);

/// The same by scoring group, in the order of first appearance; empty when all rows share one group.
[[nodiscard]] std::vector<GroupSummary> summarize_groups(const std::vector<ValidationRow>& rows);

/// Counts one run's memory verdict against what became of it.
void count_verdict(OutOfMemoryScore& score, bool died, Fit verdict);

}  // namespace cpfit
