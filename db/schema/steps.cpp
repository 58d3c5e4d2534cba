#include "db/schema/steps.h"

#include "db/schema/step_bundle.h"
#include "db/schema/step_calibration.h"
#include "db/schema/step_exclusion.h"
#include "db/schema/step_measured_job.h"
#include "db/schema/step_verification.h"

namespace cpfit {

namespace {

// Version 1: planning runs with all they found, and validations.
// A candidate's bytes per component are those alive at the peak of its worst stage; they add up to device_bytes.
// Indexes on the referencing side serve the cascade when a run is deleted.
constexpr const char* kStep1 = R"sql(
CREATE TABLE run (
  id INTEGER PRIMARY KEY,
  scenario_name TEXT NOT NULL,
  scenario_path TEXT NOT NULL,
  scenario_text TEXT NOT NULL,
  tool_version TEXT NOT NULL,
  rule_set TEXT NOT NULL,
  rates_version TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('running', 'interrupted', 'done')),
  started_unix_seconds INTEGER NOT NULL,
  finished_unix_seconds INTEGER,
  last_batch_unix_seconds INTEGER NOT NULL,
  writer_host TEXT NOT NULL,            -- host name and boot of the process that writes the run
  writer_process INTEGER NOT NULL,
  writer_start_ticks INTEGER NOT NULL,  -- tells the process from a later one with the same number
  considered INTEGER NOT NULL DEFAULT 0,
  legal INTEGER NOT NULL DEFAULT 0,
  evaluated INTEGER NOT NULL DEFAULT 0,
  search_seconds REAL NOT NULL DEFAULT 0,
  answer TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE TABLE run_input (
  run_id INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  name TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  PRIMARY KEY (run_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE rejection (
  run_id INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  rule TEXT NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (run_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE candidate (
  id INTEGER PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
  origin TEXT NOT NULL,  -- 'search': as evaluated; 'result': as judged, named by run_candidate, neighbour or sweep_point
  recipe TEXT NOT NULL,
  tp INTEGER NOT NULL,
  cp INTEGER NOT NULL,
  pp INTEGER NOT NULL,
  dp INTEGER NOT NULL,
  vpp INTEGER NOT NULL,
  ep INTEGER NOT NULL DEFAULT 1,
  gpus INTEGER NOT NULL,          -- of the recipe: tp * cp * pp * dp
  micro_batch INTEGER NOT NULL,
  cp_comm TEXT NOT NULL,
  recompute TEXT NOT NULL,
  state_sharding TEXT NOT NULL,
  status TEXT NOT NULL,
  memory_stage INTEGER NOT NULL,
  memory_cp_rank INTEGER NOT NULL,
  memory_phase TEXT NOT NULL,
  memory_moment TEXT NOT NULL,
  forward_moment TEXT NOT NULL,
  backward_moment TEXT NOT NULL,
  resident_bytes REAL NOT NULL,
  forward_peak_bytes REAL NOT NULL,
  backward_peak_bytes REAL NOT NULL,
  peak_bytes REAL NOT NULL,
  reserved_bytes REAL NOT NULL,
  device_bytes REAL NOT NULL,
  weights_bytes REAL NOT NULL,
  gradients_bytes REAL NOT NULL,
  optimizer_bytes REAL NOT NULL,
  activations_bytes REAL NOT NULL,
  recompute_bytes REAL NOT NULL,
  cp_buffers_bytes REAL NOT NULL,
  loss_bytes REAL NOT NULL,
  transient_bytes REAL NOT NULL,
  pipeline_bytes REAL NOT NULL,
  workspace_bytes REAL NOT NULL,
  reserved_extra_bytes REAL NOT NULL,
  communicators_bytes REAL NOT NULL,
  context_bytes REAL NOT NULL,
  verdict TEXT NOT NULL,
  capacity_bytes REAL NOT NULL,
  device_upper_bytes REAL NOT NULL,
  margin_bytes REAL NOT NULL,
  step_seconds REAL NOT NULL,     -- the sum of the next nine
  compute_seconds REAL NOT NULL,
  exposed_cp_seconds REAL NOT NULL,
  exposed_tp_seconds REAL NOT NULL,
  exposed_pp_seconds REAL NOT NULL,
  exposed_dp_seconds REAL NOT NULL,
  bubble_seconds REAL NOT NULL,
  launch_seconds REAL NOT NULL,
  optimizer_seconds REAL NOT NULL,
  other_seconds REAL NOT NULL,
  step_low_seconds REAL NOT NULL,
  step_high_seconds REAL NOT NULL,
  tokens_per_second_per_gpu REAL NOT NULL,
  mfu_share REAL NOT NULL,
  hfu_share REAL NOT NULL,
  cp_forward_exposed_seconds REAL NOT NULL,   -- cp_*: of one layer, one micro-batch, worst rank
  cp_backward_exposed_seconds REAL NOT NULL,
  cp_forward_message_seconds REAL NOT NULL,
  cp_backward_message_seconds REAL NOT NULL,
  cp_forward_step_compute_seconds REAL NOT NULL,
  cp_sent_per_layer_bytes REAL NOT NULL,
  cp_crosses_node INTEGER NOT NULL,
  relative_sigma REAL NOT NULL,
  in_range INTEGER NOT NULL,
  differs TEXT NOT NULL  -- field names, separated by commas
) STRICT;
CREATE INDEX candidate_run ON candidate (run_id, origin);

CREATE TABLE candidate_reason (
  candidate_id INTEGER NOT NULL REFERENCES candidate (id) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  sentence TEXT NOT NULL,
  PRIMARY KEY (candidate_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE run_candidate (
  run_id INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
  list TEXT NOT NULL CHECK (list IN ('ship', 'control', 'ranking', 'front')),
  ordinal INTEGER NOT NULL,
  candidate_id INTEGER NOT NULL REFERENCES candidate (id) ON DELETE CASCADE,
  PRIMARY KEY (run_id, list, ordinal)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_candidate_candidate ON run_candidate (candidate_id);

CREATE TABLE neighbour (
  run_id INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  candidate_id INTEGER NOT NULL REFERENCES candidate (id) ON DELETE CASCADE,
  rule TEXT NOT NULL,
  amount REAL NOT NULL,  -- in the unit of the next column
  unit TEXT NOT NULL,
  sentence TEXT NOT NULL,
  PRIMARY KEY (run_id, ordinal)
) STRICT, WITHOUT ROWID;
CREATE INDEX neighbour_candidate ON neighbour (candidate_id);

CREATE TABLE lever (
  run_id INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  change TEXT NOT NULL,
  gains TEXT NOT NULL,
  costs TEXT NOT NULL,
  gain_share REAL NOT NULL,  -- of what is missing
  differs TEXT NOT NULL,
  PRIMARY KEY (run_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE crossover (
  run_id INTEGER PRIMARY KEY REFERENCES run (id) ON DELETE CASCADE,
  needed_at_tokens INTEGER NOT NULL,  -- 0: never within the range searched
  faster_at_tokens INTEGER NOT NULL,
  held_constant TEXT NOT NULL
) STRICT;

CREATE TABLE sweep_point (
  run_id INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  candidate_id INTEGER NOT NULL REFERENCES candidate (id) ON DELETE CASCADE,
  gpus INTEGER NOT NULL,
  PRIMARY KEY (run_id, ordinal)
) STRICT, WITHOUT ROWID;
CREATE INDEX sweep_point_candidate ON sweep_point (candidate_id);

CREATE TABLE ledger (
  id INTEGER PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  recipe TEXT NOT NULL,
  memory_stage INTEGER NOT NULL,
  memory_cp_rank INTEGER NOT NULL,
  memory_phase TEXT NOT NULL,
  memory_moment TEXT NOT NULL,
  forward_moment TEXT NOT NULL,
  backward_moment TEXT NOT NULL,
  resident_bytes REAL NOT NULL,
  forward_peak_bytes REAL NOT NULL,
  backward_peak_bytes REAL NOT NULL,
  peak_bytes REAL NOT NULL,
  reserved_bytes REAL NOT NULL,
  device_bytes REAL NOT NULL,
  weights_bytes REAL NOT NULL,
  gradients_bytes REAL NOT NULL,
  optimizer_bytes REAL NOT NULL,
  activations_bytes REAL NOT NULL,
  recompute_bytes REAL NOT NULL,
  cp_buffers_bytes REAL NOT NULL,
  loss_bytes REAL NOT NULL,
  transient_bytes REAL NOT NULL,
  pipeline_bytes REAL NOT NULL,
  workspace_bytes REAL NOT NULL,
  reserved_extra_bytes REAL NOT NULL,
  communicators_bytes REAL NOT NULL,
  context_bytes REAL NOT NULL,
  UNIQUE (run_id, ordinal)
) STRICT;

CREATE TABLE ledger_entry (
  ledger_id INTEGER NOT NULL REFERENCES ledger (id) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  component TEXT NOT NULL,
  tensor TEXT NOT NULL,
  formula TEXT NOT NULL,
  source TEXT NOT NULL,
  bytes REAL NOT NULL,
  PRIMARY KEY (ledger_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE link_load (
  run_id INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
  recipe_ordinal INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  recipe TEXT NOT NULL,
  from_node TEXT NOT NULL,
  to_node TEXT NOT NULL,
  step_bytes REAL NOT NULL,
  busy_seconds REAL NOT NULL,
  PRIMARY KEY (run_id, recipe_ordinal, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE validation_run (
  id INTEGER PRIMARY KEY,
  path TEXT NOT NULL,
  tool_version TEXT NOT NULL,
  rates_version TEXT NOT NULL,
  stored_unix_seconds INTEGER NOT NULL,
  out_of_memory_rows INTEGER,  -- these six: NULL where the file does not tell which runs died
  out_of_memory_decided INTEGER,
  out_of_memory_right INTEGER,
  out_of_memory_at_risk INTEGER,
  out_of_memory_dead_called_fits INTEGER,
  out_of_memory_live_called_oom INTEGER
) STRICT;

CREATE TABLE validation_row (
  validation_run_id INTEGER NOT NULL REFERENCES validation_run (id) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  line INTEGER NOT NULL,
  label TEXT NOT NULL,
  metric TEXT NOT NULL,  -- names the unit of the next four columns
  measured REAL NOT NULL,
  predicted REAL NOT NULL,
  low REAL NOT NULL,
  high REAL NOT NULL,
  error_share REAL NOT NULL,
  scoring_group TEXT NOT NULL,
  searched TEXT NOT NULL,  -- recipe fields that the source does not say, separated by commas
  PRIMARY KEY (validation_run_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE validation_summary (
  validation_run_id INTEGER NOT NULL REFERENCES validation_run (id) ON DELETE CASCADE,
  group_ordinal INTEGER NOT NULL,  -- 0: over all rows; scoring groups from 1
  ordinal INTEGER NOT NULL,
  scoring_group TEXT NOT NULL,     -- empty for group_ordinal 0
  metric TEXT NOT NULL,
  row_count INTEGER NOT NULL,
  mape_share REAL NOT NULL,
  median_abs_error_share REAL NOT NULL,
  max_abs_error_share REAL NOT NULL,
  bias_share REAL NOT NULL,
  coverage_share REAL NOT NULL,
  PRIMARY KEY (validation_run_id, group_ordinal, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE validation_skip (
  validation_run_id INTEGER NOT NULL REFERENCES validation_run (id) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  line INTEGER NOT NULL,
  reason TEXT NOT NULL,
  PRIMARY KEY (validation_run_id, ordinal)
) STRICT, WITHOUT ROWID;
)sql";

// Version 2: what the timeline says of a run's shortlist.
constexpr const char* kStep2 = R"sql(
ALTER TABLE run ADD COLUMN timeline_seconds REAL NOT NULL DEFAULT 0;  -- time spent on it

CREATE TABLE timeline_confirmation (
  run_id INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  recipe TEXT NOT NULL,
  screen_step_seconds REAL NOT NULL,
  step_seconds REAL NOT NULL,              -- the next three: 0 where it was skipped
  exposed_cp_seconds REAL NOT NULL,
  exposed_cp_layer_seconds REAL NOT NULL,  -- one layer and micro-batch, forward and backward
  activity_count INTEGER NOT NULL,
  disagreement TEXT NOT NULL,              -- empty: within the bound
  skipped TEXT NOT NULL,                   -- empty: it was simulated
  PRIMARY KEY (run_id, ordinal)
) STRICT, WITHOUT ROWID;
)sql";

// Version 3: spans of simulated steps.
constexpr const char* kStep3 = R"sql(
CREATE TABLE timeline (
  id INTEGER PRIMARY KEY,
  scenario_path TEXT NOT NULL,
  scenario_text TEXT NOT NULL,
  recipe TEXT NOT NULL,
  tool_version TEXT NOT NULL,
  rates_version TEXT NOT NULL,
  step_picoseconds INTEGER NOT NULL,
  stored_unix_seconds INTEGER NOT NULL
) STRICT;

CREATE TABLE timeline_name (  -- what spans are called
  timeline_id INTEGER NOT NULL REFERENCES timeline (id) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  name TEXT NOT NULL,
  PRIMARY KEY (timeline_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE timeline_lane (
  timeline_id INTEGER NOT NULL REFERENCES timeline (id) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  name TEXT NOT NULL,         -- "compute", "cp send"
  span_count INTEGER NOT NULL,
  spans BLOB NOT NULL,        -- 64 bytes each, little-endian: db/store/timeline_store.h
  PRIMARY KEY (timeline_id, ordinal)
) STRICT;
)sql";

}  // namespace

std::span<const SchemaStep> schema_steps() {
  // The texts of later steps stand in files of their own: gathered when they are asked for, not before main.
  static const SchemaStep kSteps[] = {
      {1, kStep1},           {2, kStep2},      {3, kStep3},           {4, kVerificationStep},
      {5, kCalibrationStep}, {6, kBundleStep}, {7, kMeasuredJobStep}, {8, kExclusionStep},
  };
  return kSteps;
}

}  // namespace cpfit
