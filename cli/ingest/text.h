// What `cpfit ingest` prints of a job.
#pragma once

#include <string>
#include <vector>

#include "cli/json.h"
#include "db/store/measured_job_store.h"
#include "model/record/measured_run.h"

namespace cpfit::cli {

[[nodiscard]] std::string job_text(const MeasuredJob& job);
[[nodiscard]] Json job_json(const MeasuredJob& job);
[[nodiscard]] std::string jobs_text(const std::vector<MeasuredJobListing>& jobs);
[[nodiscard]] Json jobs_json(const std::vector<MeasuredJobListing>& jobs);

}  // namespace cpfit::cli
