// Whether a job is the one that was predicted. A comparison means something only at the same model, GPUs, tokens per step,
// recompute and layout: what a log says of itself is held against recipe and scenario, and every contradiction is named.
#pragma once

#include <optional>
#include <string>

#include "calibrate/read/job_figures.h"
#include "model/recipe/scenario.h"

namespace cpfit {

/// The recipe in the argument block of a log; nothing where no log holds one. Problems: what read_launch finds wrong with it.
[[nodiscard]] Outcome<std::optional<Recipe>> recipe_in(const JobFiles& files, const Recipe& base);

/// Problems: "ingest.other_framework", "ingest.other_recipe" (the keys with both values), "ingest.other_world",
/// "ingest.other_sequence", "ingest.other_batch", "ingest.other_model", "ingest.other_gpu".
[[nodiscard]] Problems contradictions(const JobFiles& files, const Scenario& scenario, const Recipe& recipe);

}  // namespace cpfit
