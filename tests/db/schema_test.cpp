// Schema steps: numbered, whole or not at all, run once; and the schema's own promises.
#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "db/query/runs.h"
#include "db/schema/migrate.h"
#include "db/store/bundle_store.h"
#include "db/store/calibration_store.h"
#include "db/store/measured_job_store.h"
#include "db/store/run_store.h"
#include "db/store/timeline_store.h"
#include "db/store/validation_store.h"
#include "db/store/verification_store.h"
#include "sample_records.h"

namespace cpfit {
namespace {

using ::testing::HasSubstr;

/// The steps there are, and one more.
std::vector<SchemaStep> steps_with(const char* sql) {
  std::vector<SchemaStep> steps(schema_steps().begin(), schema_steps().end());
  steps.push_back({steps.back().version + 1, sql});
  return steps;
}

std::int32_t newest() { return schema_steps().back().version; }

TEST(Schema, StepsAreNumberedFromOne) {
  std::int32_t version = 0;
  for (const SchemaStep& step : schema_steps()) EXPECT_EQ(step.version, ++version);
}

TEST(Schema, AnEmptyDatabaseIsBroughtUpAndRecognised) {
  SQLite::Database database(":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  EXPECT_EQ(recognise(database).kind, DatabaseKind::kEmpty);
  migrate(database, schema_steps());
  EXPECT_EQ(recognise(database).kind, DatabaseKind::kOurs);
  EXPECT_EQ(recognise(database).version, newest());
}

TEST(Schema, AnOlderDatabaseGetsTheStepsItLacksAndKeepsItsRows) {
  const sample::TemporaryFolder folder;
  const std::string path = folder.file("study.cpfit");
  RunId run{};
  {
    Store store = open_store(path);
    run = create_run(store, sample::provenance());
    candidate_sink(store, run)(sample::batch(0, 10));
    finish_run(store, run, sample::plan_result());
  }
  const std::vector<SchemaStep> steps =
      steps_with("ALTER TABLE run ADD COLUMN note TEXT NOT NULL DEFAULT 'none'; CREATE TABLE planted (id INTEGER) STRICT;");
  {
    SQLite::Database database(path, SQLite::OPEN_READWRITE);
    migrate(database, steps);
    EXPECT_EQ(recognise(database).version, newest() + 1);
    EXPECT_EQ(database.execAndGet("SELECT note FROM run").getString(), "none");
    EXPECT_EQ(database.execAndGet("SELECT count(*) FROM candidate WHERE origin = 'search'").getInt(), 10);
    migrate(database, steps);  // a second time there is nothing to do; CREATE TABLE planted would fail
    database.exec("PRAGMA user_version = " + std::to_string(newest()));  // its rows can still be read by what knows the older one
  }
  EXPECT_EQ(load_run(open_store(path), run)->ship, sample::plan_result().ship);
}

TEST(Schema, ADatabaseOfTheFirstVersionIsReadAsItIsAndBroughtUpByAWriter) {
  const sample::TemporaryFolder folder;
  const std::string path = folder.file("study.cpfit");
  RunId run{};
  {
    Store store = open_store(path);
    run = create_run(store, sample::provenance());
    finish_run(store, run, sample::plan_result());
  }
  {  // what the later steps added, taken back
    SQLite::Database database(path, SQLite::OPEN_READWRITE);
    database.exec("DROP TABLE calibration_exclusion;");
    database.exec(
        "DROP TABLE calibration_surface; DROP TABLE calibration_gap; DROP TABLE calibration_source; DROP TABLE calibration;");
    database.exec("DROP TABLE bundle; DROP TABLE input_text;");
    database.exec("DROP TABLE measured_source; DROP TABLE measured_figure; DROP TABLE measured_left_out;");
    database.exec("DROP TABLE measured_remark; DROP TABLE measured_job;");
    database.exec("DROP TABLE verification_left_out; DROP TABLE verification_control; DROP TABLE verification_block;");
    database.exec("DROP TABLE verification_error; DROP TABLE verification_case; DROP TABLE verification;");
    database.exec("DROP TABLE timeline_lane; DROP TABLE timeline_name; DROP TABLE timeline;");
    database.exec("DROP TABLE timeline_confirmation; ALTER TABLE run DROP COLUMN timeline_seconds; PRAGMA user_version = 1");
  }
  {
    const Store older = open_store(path, {.access = StoreAccess::kRead});
    EXPECT_TRUE(list_timelines(older).empty());
    EXPECT_EQ(load_timeline(older, TimelineId{1}).problems()[0].code, "timeline.unknown");
    EXPECT_TRUE(list_verifications(older).empty());
    EXPECT_TRUE(proofs_of(older).empty());
    EXPECT_EQ(load_verification(older, VerificationId{1}).problems()[0].code, "verification.unknown");
    const Outcome<PlanResult> read = load_run(older, run);
    EXPECT_EQ(read->ship, sample::plan_result().ship);
    EXPECT_TRUE(read->confirmations.empty());
    EXPECT_EQ(read->stats.timeline_seconds, 0.0);
  }
  const Outcome<PlanResult> read = load_run(open_store(path), run);
  EXPECT_EQ(read->ship, sample::plan_result().ship);
  EXPECT_TRUE(read->confirmations.empty());
  SQLite::Database database(path, SQLite::OPEN_READONLY);
  EXPECT_EQ(recognise(database).version, newest());
}

TEST(Schema, EveryOlderVersionIsListedAsItIsAndBroughtUpByAWriter) {
  const sample::TemporaryFolder folder;
  for (std::size_t known = 1; known <= schema_steps().size(); ++known) {
    SCOPED_TRACE("version " + std::to_string(known));
    const std::string path = folder.file("v" + std::to_string(known) + ".cpfit");
    {
      SQLite::Database database(path, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
      database.exec("PRAGMA page_size = 8192; PRAGMA journal_mode = WAL");
      migrate(database, schema_steps().first(known));
      EXPECT_EQ(recognise(database).version, static_cast<std::int32_t>(known));
    }
    {  // what such a version had no tables for is not there; nothing is written
      const Store older = open_store(path, {.access = StoreAccess::kRead});
      EXPECT_TRUE(list_runs(older).empty());
      EXPECT_TRUE(list_timelines(older).empty());
      EXPECT_TRUE(list_verifications(older).empty());
      EXPECT_TRUE(list_validations(older).empty());
      EXPECT_TRUE(list_calibrations(older).empty());
      EXPECT_TRUE(list_bundles(older).empty());
      EXPECT_TRUE(list_measured_jobs(older).empty());
    }
    {
      Store store = open_store(path);
      const RunId run = create_run(store, sample::provenance());
      candidate_sink(store, run)(sample::batch(0, 3));
      finish_run(store, run, sample::plan_result());
      EXPECT_EQ(load_run(store, run)->confirmations, sample::plan_result().confirmations);
    }
    SQLite::Database database(path, SQLite::OPEN_READONLY);
    EXPECT_EQ(recognise(database).version, newest());
  }
}

TEST(Schema, AStepThatFailsLeavesNoTrace) {
  SQLite::Database database(":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  migrate(database, schema_steps());
  EXPECT_THROW(migrate(database, steps_with("CREATE TABLE half (id INTEGER) STRICT; CREATE TABLE run (id INTEGER);")),
               SQLite::Exception);
  EXPECT_FALSE(database.tableExists("half"));
  EXPECT_EQ(recognise(database).version, newest());
}

TEST(Schema, EveryTableIsStrictAndNamesInSnakeCase) {
  SQLite::Database database(":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  migrate(database, schema_steps());
  SQLite::Statement tables(database,
                           "SELECT name, strict FROM pragma_table_list WHERE schema = 'main' AND name NOT LIKE 'sqlite_%'");
  int count = 0;
  while (tables.executeStep()) {
    ++count;
    const std::string name = tables.getColumn(0).getString();
    EXPECT_EQ(tables.getColumn(1).getInt(), 1) << name;
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string::npos) << name;
    SQLite::Statement columns(database, "SELECT name, type FROM pragma_table_info(?)");
    columns.bind(1, name);
    while (columns.executeStep()) {
      const std::string column = columns.getColumn(0).getString();
      if (columns.getColumn(1).getString() != "REAL") continue;
      // A unit in the name, or a figure without one, or the unit in a column beside it.
      const std::string units =
          "_bytes _seconds _share _nats _mhz _watts tokens_per_second_per_gpu relative_sigma bytes amount measured predicted "
          "low high measured_low measured_high";
      const std::size_t last = column.rfind('_');
      const bool unit = units.find(column) != std::string::npos ||
                        (last != std::string::npos && units.find(column.substr(last)) != std::string::npos);
      EXPECT_TRUE(unit) << name << "." << column << " does not say its unit";
    }
  }
  // 14 of runs, 4 of validations, 3 of timelines, 6 of verifications, 5 of calibrations, 2 of bundles, 5 of measured jobs
  EXPECT_EQ(count, 39);
}

TEST(Schema, DeletingARunDeletesAllOfItAndNothingElse) {
  const sample::TemporaryFolder folder;
  const std::string path = folder.file("study.cpfit");
  Store store = open_store(path);
  std::vector<RunId> runs;
  for (int i = 0; i < 2; ++i) {
    runs.push_back(create_run(store, sample::provenance()));
    std::vector<Candidate> batch = sample::batch(0, 10);
    batch[3].reasons = {"a reason"};
    candidate_sink(store, runs.back())(batch);
    finish_run(store, runs.back(), sample::plan_result());
  }
  SQLite::Database database(path, SQLite::OPEN_READWRITE);
  database.exec("PRAGMA foreign_keys = ON");
  const auto rows = [&] {
    std::int64_t sum = 0;
    for (const char* table :
         {"run", "run_input", "rejection", "candidate", "candidate_reason", "run_candidate", "neighbour", "lever", "crossover",
          "sweep_point", "ledger", "ledger_entry", "link_load", "timeline_confirmation"}) {
      const std::int64_t count = database.execAndGet(std::string("SELECT count(*) FROM ") + table).getInt64();
      EXPECT_GT(count, 0) << table << " was never written";
      sum += count;
    }
    return sum;
  };
  const std::int64_t both = rows();
  database.exec("DELETE FROM run WHERE id = 1");
  EXPECT_EQ(rows() * 2, both);
  EXPECT_EQ(load_run(store, runs[1])->ship, sample::plan_result().ship);
  EXPECT_EQ(candidates_of(store, runs[1]).size(), 10U);
}

}  // namespace
}  // namespace cpfit
