// Measured jobs in a store: whole, listed with what stands out, and outliving the run they were compared with.
#include <SQLiteCpp/SQLiteCpp.h>
#include <gtest/gtest.h>

#include "db/store/measured_job_store.h"
#include "db/store/run_store.h"
#include "sample_records.h"

namespace cpfit {
namespace {

/// A different value in every field.
MeasuredJob sample_job() {
  MeasuredJob job;
  job.sources = {{"logs/train.log", "Megatron-LM log"}, {"rank0.json.gz", "Kineto trace"}};
  job.framework = "Megatron-LM";
  job.scenario_name = "eight";
  job.recipe = "tp=2,cp=4";
  job.tool_version = "0.9";
  job.rates_version = "2026-11";
  job.gpus = 8;
  job.sequence_tokens = 131072;
  job.global_batch = 16;
  job.logged_steps = 400;
  job.skipped_updates = 3;
  job.nan_steps = 2;
  job.attempts = 5;
  for (int i = 0; i < kRunFigureCount; ++i) {
    ComparedFigure row;
    row.measured = {static_cast<RunFigure>(i),   i - 1, 50 + i, 10.0 + i, 9.5 + i, 11.25 + i, 100 + i, 7 + i,
                    "basis " + std::to_string(i)};
    row.predicted = 20.5 + i;
    row.low = 18.5 + i;
    row.high = 22.5 + i;
    row.standing = static_cast<Standing>(i % kStandingCount);
    row.note = "note " + std::to_string(i);
    job.figures.push_back(row);
  }
  job.left_out = {{1, 12, 9.75, "warm-up"}, {30, 41, 0, "its update was skipped"}};
  job.remarks = {"first", "second"};
  return job;
}

TEST(MeasuredJobStore, KeepsEveryField) {
  const sample::TemporaryFolder folder;
  Store store = open_store(folder.file("jobs.cpfit"));
  const MeasuredJob job = sample_job();
  const MeasuredJobId id = save_measured_job(store, job);
  EXPECT_EQ(load_measured_job(store, id).value(), job);
  const MeasuredJobId bare = save_measured_job(store, MeasuredJob{});
  EXPECT_EQ(load_measured_job(store, bare).value(), MeasuredJob{});
  EXPECT_EQ(load_measured_job(store, MeasuredJobId{99}).problems()[0].code, "measured_job.unknown");
}

TEST(MeasuredJobStore, ListsTheYoungestFirstWithWhatStandsOut) {
  const sample::TemporaryFolder folder;
  Store store = open_store(folder.file("jobs.cpfit"));
  (void)save_measured_job(store, MeasuredJob{});
  (void)save_measured_job(store, sample_job());
  const std::vector<MeasuredJobListing> jobs = list_measured_jobs(store);
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].source, "logs/train.log");
  EXPECT_EQ(jobs[0].sources, 2);
  // Twelve figures, a quarter each: not predicted, inside, outside, outlier.
  EXPECT_EQ(jobs[0].figures, 12);
  EXPECT_EQ(jobs[0].compared, 9);
  EXPECT_EQ(jobs[0].inside, 3);
  EXPECT_EQ(jobs[0].outliers, 3);
  EXPECT_EQ(jobs[1].figures, 0);
  EXPECT_EQ(jobs[1].source, "");
}

TEST(MeasuredJobStore, OutlivesItsRun) {
  const sample::TemporaryFolder folder;
  const std::string path = folder.file("jobs.cpfit");
  Store store = open_store(path);
  const RunId run = create_run(store, sample::provenance());
  MeasuredJob job = sample_job();
  job.run = static_cast<std::int64_t>(run);
  const MeasuredJobId id = save_measured_job(store, job);
  EXPECT_EQ(list_measured_jobs(store)[0].run, job.run);
  SQLite::Database database(path, SQLite::OPEN_READWRITE);
  database.exec("PRAGMA foreign_keys = ON");
  database.exec("DELETE FROM run");
  EXPECT_EQ(load_measured_job(store, id)->run, 0);
  // A run that is not there is refused, and nothing of the job is kept.
  job.run = 12345;
  EXPECT_THROW((void)save_measured_job(store, job), Error);
  EXPECT_EQ(list_measured_jobs(store).size(), 1u);
  database.exec("DELETE FROM measured_job");
  for (const char* table : {"measured_source", "measured_figure", "measured_left_out", "measured_remark"})
    EXPECT_EQ(database.execAndGet(std::string("SELECT count(*) FROM ") + table).getInt(), 0) << table;
}

}  // namespace
}  // namespace cpfit
