// A real job's figures beside what is predicted for its recipe: the screen, as `cpfit validate` predicts the rows of tables, with
// the same 90 % intervals. Memory is compared with the stage it was measured on. Communication that a trace shows as exposed is
// compared by axis; a pipeline's kernels run while a stage waits for its neighbour, so its bubble belongs to what is measured
// there.
//
// Frameworks count FLOPs in different ways (attention over s or s/2 keys, recomputed layers or not). Which one a log uses follows
// from its own figures: TFLOP/s per GPU x GPUs x seconds per step / tokens per step is its count per token, and the convention
// within kConventionError of it is taken. Where none is, TFLOP/s and MFU are left without a prediction.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/quantity/problem.h"
#include "model/rates/rate_set.h"
#include "model/recipe/scenario.h"
#include "model/record/candidate.h"
#include "model/record/measured_run.h"

namespace cpfit {

/// Exposed communication of one step, seconds.
struct ExposedTimes {
  double cp = 0, tp = 0, pp = 0, dp = 0;
};

struct JobCase {
  Scenario scenario;      // base is the job's recipe, training what it trains
  double peak_flops = 0;  // that MFU is a share of, FLOP/s; 0: taken from the job's TFLOP/s and MFU
  std::vector<MeasuredFigure> figures;
  /// What a trace of the predicted step would show, by rank; -1 of ranks that are not named. Empty: the screen's parts.
  std::map<std::int64_t, ExposedTimes> exposed;
};

struct JobComparison {
  std::vector<ComparedFigure> figures;  // in the order of the case
  Candidate predicted;
  std::string flops_convention;  // in words; empty without TFLOP/s
};

inline constexpr double kConventionError = 0.03;  // vocabularies are padded, norms and rotations are counted or not

/// Problem "ingest.unpredictable": the recipe cannot be predicted, with the reason.
[[nodiscard]] Outcome<JobComparison> compare_job(const JobCase& job, const RateSet& rates);

}  // namespace cpfit
