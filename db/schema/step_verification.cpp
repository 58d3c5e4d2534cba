#include "db/schema/step_verification.h"

namespace cpfit {

// Attention compared with the truth, and what it proves. Errors are shares of a norm (model/record/verification.h).
const char* const kVerificationStep = R"sql(
CREATE TABLE verification (
  id INTEGER PRIMARY KEY,
  suite TEXT NOT NULL,
  backend TEXT NOT NULL,
  implementation TEXT NOT NULL,
  implementation_version TEXT NOT NULL,
  tool_version TEXT NOT NULL,
  fixture_sha256 TEXT NOT NULL,
  suite_seconds REAL NOT NULL,
  all_caught INTEGER NOT NULL,  -- 0: a planted fault passed, so nothing here proves anything
  stored_unix_seconds INTEGER NOT NULL
) STRICT;

CREATE TABLE verification_case (
  verification_id INTEGER NOT NULL REFERENCES verification (id) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  method TEXT NOT NULL,
  mask TEXT NOT NULL,
  shape TEXT NOT NULL,
  layout TEXT NOT NULL,
  dtype TEXT NOT NULL,
  cp INTEGER NOT NULL,
  inner_ranks INTEGER NOT NULL,  -- 0: the method's own
  length_tokens INTEGER NOT NULL,
  passed INTEGER NOT NULL,
  pad_checked INTEGER NOT NULL,
  pad_invariant INTEGER NOT NULL,
  covered INTEGER NOT NULL,
  occupancy_share REAL NOT NULL,
  trouble TEXT NOT NULL,
  PRIMARY KEY (verification_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE verification_error (
  verification_id INTEGER NOT NULL,
  case_ordinal INTEGER NOT NULL,
  tensor TEXT NOT NULL,
  judged INTEGER NOT NULL,
  normwise_share REAL NOT NULL,
  largest_share REAL NOT NULL,
  kernel_normwise_share REAL NOT NULL,
  kernel_largest_share REAL NOT NULL,
  normwise_limit_share REAL NOT NULL,
  largest_limit_share REAL NOT NULL,
  PRIMARY KEY (verification_id, case_ordinal, tensor),
  FOREIGN KEY (verification_id, case_ordinal) REFERENCES verification_case (verification_id, ordinal) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE verification_block (
  verification_id INTEGER NOT NULL REFERENCES verification (id) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  method TEXT NOT NULL,
  shape TEXT NOT NULL,
  cp INTEGER NOT NULL,
  passed INTEGER NOT NULL,
  loss_truth_nats REAL,  -- per token; NULL: not a number
  loss_nats REAL,
  parameter TEXT NOT NULL,
  error_share REAL NOT NULL,
  limit_share REAL NOT NULL,
  trouble TEXT NOT NULL,
  PRIMARY KEY (verification_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE verification_control (
  verification_id INTEGER NOT NULL REFERENCES verification (id) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  name TEXT NOT NULL,
  meaning TEXT NOT NULL,
  planted_in TEXT NOT NULL,
  caught INTEGER NOT NULL,
  tensor TEXT NOT NULL,
  error_share REAL NOT NULL,
  limit_share REAL NOT NULL,
  loss_truth_nats REAL,   -- per token; NULL: not a number
  loss_faulty_nats REAL,
  gradient TEXT NOT NULL,
  gradient_error_share REAL NOT NULL,
  loss_looks_alike INTEGER NOT NULL,
  trouble TEXT NOT NULL,
  PRIMARY KEY (verification_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE verification_left_out (
  verification_id INTEGER NOT NULL REFERENCES verification (id) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  reason TEXT NOT NULL,
  case_count INTEGER NOT NULL,
  PRIMARY KEY (verification_id, ordinal)
) STRICT, WITHOUT ROWID;
)sql";

}  // namespace cpfit
