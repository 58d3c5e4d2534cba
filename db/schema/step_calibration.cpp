#include "db/schema/step_calibration.h"

namespace cpfit {

// Calibrations. Texts of several (hosts, groups) have a line each. rates_toml holds the fitted rows;
// calibration_surface repeats their quality for queries.
const char* const kCalibrationStep = R"sql(
CREATE TABLE calibration (
  id INTEGER PRIMARY KEY,
  sha256 TEXT NOT NULL UNIQUE,            -- of the content: the calibration's own id
  name TEXT NOT NULL,
  tool_version TEXT NOT NULL,
  assumed INTEGER NOT NULL,               -- 1: data-sheet defaults
  created_unix_seconds INTEGER NOT NULL,  -- 0: not known
  hosts TEXT NOT NULL,
  cpu TEXT NOT NULL,
  core_count INTEGER NOT NULL,
  memory_bytes INTEGER NOT NULL,          -- of one host
  gpu TEXT NOT NULL,
  gpus_per_host INTEGER NOT NULL,
  gpu_memory_bytes INTEGER NOT NULL,
  driver TEXT NOT NULL,
  cuda TEXT NOT NULL,
  nccl TEXT NOT NULL,
  cudnn TEXT NOT NULL,
  mpi TEXT NOT NULL,
  blas TEXT NOT NULL,
  throttled TEXT NOT NULL,                -- empty: nothing seen
  link TEXT NOT NULL,
  clock_min_mhz REAL,                     -- these four: NULL where nothing told
  clock_median_mhz REAL,
  clock_max_mhz REAL,
  power_limit_watts REAL,
  member_groups TEXT NOT NULL,            -- what communicated
  rates_toml TEXT NOT NULL
) STRICT;
CREATE INDEX calibration_name ON calibration (name);

CREATE TABLE calibration_source (
  calibration_id INTEGER NOT NULL REFERENCES calibration (id) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  path TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  format TEXT NOT NULL,
  point_count INTEGER NOT NULL,
  left_out_count INTEGER NOT NULL,
  PRIMARY KEY (calibration_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE calibration_gap (
  calibration_id INTEGER NOT NULL REFERENCES calibration (id) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  surface TEXT NOT NULL,
  reason TEXT NOT NULL,
  PRIMARY KEY (calibration_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE calibration_surface (
  calibration_id INTEGER NOT NULL REFERENCES calibration (id) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  device TEXT NOT NULL,
  surface TEXT NOT NULL,
  fitted_range TEXT NOT NULL,
  row_count INTEGER NOT NULL,
  held_out_count INTEGER NOT NULL,
  median_error_share REAL NOT NULL,
  p90_error_share REAL NOT NULL,
  noise_share REAL NOT NULL,              -- 0: the source does not tell
  evidence TEXT NOT NULL,
  source TEXT NOT NULL,
  PRIMARY KEY (calibration_id, ordinal)
) STRICT, WITHOUT ROWID;
)sql";

}  // namespace cpfit
