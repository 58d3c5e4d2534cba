// Predicts published measurements and scores the predictions: errors per row and per metric, coverage of the interval, and
// counts of the memory verdict where a table tells runs that died from runs that lived. One implementation for `cpfit
// validate`, the tests and the calibration view. Nothing here knows the source of a row.
#pragma once

#include <functional>

#include "model/rates/rate_set.h"
#include "model/record/candidate.h"
#include "model/record/validation.h"

namespace cpfit {

/// Told of every training run that was predicted: the run, and the recipe taken for it with its parts of a step.
using RunSeen = std::function<void(const MeasuredRun&, const Candidate&)>;

/// Every measured figure of the table is predicted or its line ends in `skipped` with a reason: illegal or unresolvable
/// recipes, figures above the device's peak ("exceeds peak"), rows the reader skipped. Rows come in file order.
[[nodiscard]] ValidationResult evaluate(const MeasuredTable& table, const RateSet& rates, const RunSeen& seen = nullptr);

}  // namespace cpfit
