#include "db/schema/step_exclusion.h"

namespace cpfit {

// Points that a person kept out of a calibration's fit, with why: the file they stand in is one of calibration_source.
const char* const kExclusionStep = R"sql(
CREATE TABLE calibration_exclusion (
  calibration_id INTEGER NOT NULL REFERENCES calibration (id) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  source_sha256 TEXT NOT NULL,
  line INTEGER NOT NULL,
  point TEXT NOT NULL,
  reason TEXT NOT NULL,
  PRIMARY KEY (calibration_id, ordinal)
) STRICT, WITHOUT ROWID;
)sql";

}  // namespace cpfit
