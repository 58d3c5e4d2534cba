#include "db/schema/step_bundle.h"

namespace cpfit {

// What the hashes of run_input stand for, so that a later cpfit can say what changed in them, and a run can be repeated after its
// files have changed; and bundles that came from elsewhere.
const char* const kBundleStep = R"sql(
CREATE TABLE input_text (
  sha256 TEXT PRIMARY KEY,  -- of content: each text once, however many runs were computed from it
  name TEXT NOT NULL,       -- of the first that used it
  content BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE bundle (
  id INTEGER PRIMARY KEY,
  sha256 TEXT NOT NULL UNIQUE,  -- the file's own
  scenario_name TEXT NOT NULL,
  recipe TEXT NOT NULL,
  tool_version TEXT NOT NULL,   -- that exported it
  rates_version TEXT NOT NULL,
  gpus INTEGER NOT NULL,
  step_seconds REAL NOT NULL,
  content TEXT NOT NULL,        -- the file, byte for byte
  stored_unix_seconds INTEGER NOT NULL
) STRICT;
)sql";

}  // namespace cpfit
