// Real jobs that were taken in, in a store.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "db/store/store.h"
#include "model/record/measured_run.h"

namespace cpfit {

enum class MeasuredJobId : std::int64_t {};

/// One transaction. `job.run`, when not 0, must be a run of this store.
[[nodiscard]] MeasuredJobId save_measured_job(Store& store, const MeasuredJob& job);

struct MeasuredJobListing {
  MeasuredJobId id{};
  std::string source;  // the first
  std::int64_t sources = 0;
  std::string framework, scenario_name, recipe;
  std::int64_t run = 0;
  std::int64_t stored_unix_seconds = 0;
  std::int64_t figures = 0, compared = 0, inside = 0, outliers = 0;
};

/// Youngest first.
[[nodiscard]] std::vector<MeasuredJobListing> list_measured_jobs(const Store& store);

/// Problem "measured_job.unknown" when there is none of that id.
[[nodiscard]] Outcome<MeasuredJob> load_measured_job(const Store& store, MeasuredJobId id);

}  // namespace cpfit
