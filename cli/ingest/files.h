// The files of `cpfit ingest`, each recognised by its content and read.
#pragma once

#include <string>
#include <vector>

#include "calibrate/read/job_figures.h"
#include "model/record/validation.h"

namespace cpfit::cli {

struct IngestedFiles {
  JobFiles job;                         // of one job
  std::vector<MeasuredTable> tables;    // rows of their own
  std::vector<RunSource> overlap_only;  // Nsight exports: read by `cpfit trace`, they say nothing of axes or steps
  std::vector<MeasuredFigure> overlap;  // what they say all the same
};

/// Problems of the first file that cannot be read, with its path.
[[nodiscard]] Outcome<IngestedFiles> read_ingested(const std::vector<std::string>& paths, const JobReading& reading);

}  // namespace cpfit::cli
