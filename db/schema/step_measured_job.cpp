#include "db/schema/step_measured_job.h"

namespace cpfit {

// What real jobs were measured to do beside what was predicted for them (model/record/measured_run.h). A job outlives the run it
// was compared with.
const char* const kMeasuredJobStep = R"sql(
CREATE TABLE measured_job (
  id INTEGER PRIMARY KEY,
  framework TEXT NOT NULL,        -- empty: no log among its files
  scenario_name TEXT NOT NULL,    -- empty: compared with nothing
  recipe TEXT NOT NULL,
  run_id INTEGER REFERENCES run (id) ON DELETE SET NULL,  -- whose ship was compared; NULL: none
  tool_version TEXT NOT NULL,
  rates_version TEXT NOT NULL,
  gpus INTEGER NOT NULL,          -- these three: 0 where not known
  sequence_tokens INTEGER NOT NULL,
  global_batch INTEGER NOT NULL,
  logged_step_count INTEGER NOT NULL,
  skipped_update_count INTEGER NOT NULL,
  nan_step_count INTEGER NOT NULL,
  attempt_count INTEGER NOT NULL,
  stored_unix_seconds INTEGER NOT NULL
) STRICT;
CREATE INDEX measured_job_run ON measured_job (run_id);

CREATE TABLE measured_source (
  measured_job_id INTEGER NOT NULL REFERENCES measured_job (id) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  path TEXT NOT NULL,
  format TEXT NOT NULL,
  PRIMARY KEY (measured_job_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE measured_figure (
  measured_job_id INTEGER NOT NULL REFERENCES measured_job (id) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  figure TEXT NOT NULL,           -- "step_seconds": the unit of the reals is in its name
  stage INTEGER NOT NULL,         -- pipeline stage of memory; -1: not of one
  rank INTEGER NOT NULL,          -- -1: not said, or of the whole job
  measured REAL NOT NULL,         -- median
  measured_low REAL NOT NULL,
  measured_high REAL NOT NULL,
  sample_count INTEGER NOT NULL,
  left_out_count INTEGER NOT NULL,
  basis TEXT NOT NULL,
  predicted REAL NOT NULL,        -- these three: 0 where nothing was predicted
  low REAL NOT NULL,
  high REAL NOT NULL,
  standing TEXT NOT NULL,
  note TEXT NOT NULL,
  PRIMARY KEY (measured_job_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE measured_left_out (
  measured_job_id INTEGER NOT NULL REFERENCES measured_job (id) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  iteration INTEGER NOT NULL,
  line INTEGER NOT NULL,
  step_seconds REAL NOT NULL,     -- 0: not logged
  reason TEXT NOT NULL,
  PRIMARY KEY (measured_job_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE measured_remark (
  measured_job_id INTEGER NOT NULL REFERENCES measured_job (id) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  remark TEXT NOT NULL,
  PRIMARY KEY (measured_job_id, ordinal)
) STRICT, WITHOUT ROWID;
)sql";

}  // namespace cpfit
