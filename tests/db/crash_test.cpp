// Processes that die, and processes that write at the same time.
#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <random>
#include <thread>

#include "db/query/runs.h"
#include "db/store/run_store.h"
#include "db/store/writer_process.h"
#include "sample_records.h"

namespace cpfit {
namespace {

using ::testing::HasSubstr;

constexpr std::int32_t kBatch = 100;

std::string integrity(const std::string& path) {
  const SQLite::Database database(path, SQLite::OPEN_READWRITE);
  SQLite::Statement check(database, "PRAGMA integrity_check");
  check.executeStep();
  const std::string answer = check.getColumn(0).getString();
  SQLite::Statement foreign(database, "PRAGMA foreign_key_check");
  return answer + (foreign.executeStep() ? ", a foreign key is broken" : "");
}

/// Writes batches for ever, after continuing the unfinished run if there is one: candidates 0, 1, 2, ... in order.
[[noreturn]] void search_for_ever(const std::string& path) {
  Store store = open_store(path);
  const std::optional<ResumableRun> found = find_resumable(store, sample::provenance());
  if (found && !resume_run(store, found->run)) throw Error("the run was taken by nobody, and yet not free");
  const RunId run = found ? found->run : create_run(store, sample::provenance());
  const CandidateSink sink = candidate_sink(store, run);
  for (auto next = found ? static_cast<std::int32_t>(found->recipes.size()) : 0;; next += kBatch)
    sink(sample::batch(next, kBatch));
}

TEST(Crash, KilledSearchLeavesWholeBatchesAndIsContinued) {
  const sample::TemporaryFolder folder;
  const std::string path = folder.file("study.cpfit");
  std::minstd_rand random(20251129);
  std::uniform_int_distribution<int> pause_ms(0, 100);
  constexpr int kRounds = 12;
  std::size_t stored = 0;
  for (int round = 0; round < kRounds || (stored == 0 && round < 2 * kRounds); ++round) {
    const int child = sample::start_child([&] { search_for_ever(path); });
    ASSERT_GT(child, 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms(random) * (round < kRounds ? 1 : 20)));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    ASSERT_EQ(sample::wait_for(child), 128 + SIGKILL);
    if (!std::filesystem::exists(path)) continue;  // killed before it made the file

    Store store = open_store(path);  // also finishes a schema whose making was cut off
    EXPECT_EQ(integrity(path), "ok");
    const std::optional<ResumableRun> found = find_resumable(store, sample::provenance());
    if (!found) {  // killed before it made the run
      EXPECT_TRUE(list_runs(store).empty());
      continue;
    }
    EXPECT_EQ(list_runs(store).size(), 1U) << "a run was begun anew instead of continued";
    EXPECT_EQ(list_runs(store).front().status, RunStatus::kInterrupted);
    EXPECT_EQ(found->recipes.size() % kBatch, 0U);
    EXPECT_GE(found->recipes.size(), stored) << "a committed batch was lost";
    stored = found->recipes.size();
    const std::vector<Candidate> read = candidates_of(store, found->run);
    ASSERT_EQ(read.size(), stored) << "a recipe was stored twice";
    for (std::size_t i = 0; i < read.size(); i += 37) EXPECT_EQ(read[i], sample::candidate(static_cast<std::int32_t>(i)));
  }
  EXPECT_GT(stored, 0U) << "every child was killed before its first batch";
  Store store = open_store(path);  // however the moments fell: in the end the run can be finished
  const std::optional<ResumableRun> found = find_resumable(store, sample::provenance());
  ASSERT_TRUE(found.has_value());
  ASSERT_TRUE(resume_run(store, found->run));
  finish_run(store, found->run, sample::plan_result());
  EXPECT_EQ(list_runs(store).front().status, RunStatus::kDone);
  EXPECT_FALSE(find_resumable(store, sample::provenance()).has_value());
}

TEST(Crash, KilledAfterACommitLosesNothing) {
  const sample::TemporaryFolder folder;
  const std::string path = folder.file("study.cpfit");
  const int child = sample::start_child([&] {
    Store store = open_store(path);
    const CandidateSink sink = candidate_sink(store, create_run(store, sample::provenance()));
    sink(sample::batch(0, kBatch));
    sink(sample::batch(kBatch, kBatch));
    ::kill(::getpid(), SIGKILL);
  });
  ASSERT_EQ(sample::wait_for(child), 128 + SIGKILL);
  const Store store = open_store(path);
  const std::optional<ResumableRun> found = find_resumable(store, sample::provenance());
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->recipes.size(), 2U * kBatch);
  EXPECT_TRUE(found->recipes.contains(to_text(sample::candidate(kBatch).recipe)));
  EXPECT_EQ(load_run(store, found->run)->provenance, sample::provenance());
}

TEST(Resume, OnlyWhatWasComputedFromTheSame) {
  const sample::TemporaryFolder folder;
  Store store = open_store(folder.file("study.cpfit"));
  const RunId run = create_run(store, sample::provenance());
  EXPECT_FALSE(find_resumable(store, sample::provenance()).has_value()) << "its writer, this process, lives";
  interrupt_run(store, run);
  ASSERT_TRUE(find_resumable(store, sample::provenance()).has_value());

  Provenance same = sample::provenance();
  std::swap(same.input_hashes[0], same.input_hashes[1]);
  same.scenario_path = "elsewhere.toml";
  same.scenario_name = "renamed";
  EXPECT_TRUE(find_resumable(store, same).has_value());

  for (std::string Provenance::* field :
       {&Provenance::scenario_text, &Provenance::tool_version, &Provenance::rule_set, &Provenance::rates_version}) {
    Provenance other = sample::provenance();
    other.*field += "x";
    EXPECT_FALSE(find_resumable(store, other).has_value());
  }
  Provenance other_input = sample::provenance();
  other_input.input_hashes[1].second = "22ee";
  EXPECT_FALSE(find_resumable(store, other_input).has_value());
}

TEST(Resume, OneProcessContinuesARun) {
  const sample::TemporaryFolder folder;
  const std::string path = folder.file("study.cpfit");
  RunId run{};
  {
    Store store = open_store(path);
    run = create_run(store, sample::provenance());
    interrupt_run(store, run);
  }
  const int child = sample::start_child([&] {
    Store store = open_store(path);
    if (!resume_run(store, run)) throw Error("not free");
    ::pause();  // holds the run until it is killed
  });
  Store store = open_store(path);
  while (list_runs(store).front().status != RunStatus::kRunning) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_FALSE(find_resumable(store, sample::provenance()).has_value());
  EXPECT_FALSE(resume_run(store, run));
  ::kill(child, SIGKILL);
  ASSERT_EQ(sample::wait_for(child), 128 + SIGKILL);
  EXPECT_TRUE(resume_run(store, run));
}

TEST(Resume, AWriterThatLostItsRunIsToldSo) {
  const sample::TemporaryFolder folder;
  Store store = open_store(folder.file("study.cpfit"));
  const RunId run = create_run(store, sample::provenance());
  const CandidateSink sink = candidate_sink(store, run);
  interrupt_run(store, run);
  try {
    sink(sample::batch(0, 2));
    FAIL() << "wrote into a run that is not its own";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("no longer written by this process"));
  }
  EXPECT_TRUE(candidates_of(store, run).empty());
}

TEST(Resume, AWriterIsKnownByMoreThanItsNumber) {
  const WriterProcess self = this_process();
  EXPECT_EQ(life_of(self), WriterLife::kAlive);
  WriterProcess earlier = self;  // the same number, given out again
  earlier.start_ticks -= 1;
  EXPECT_EQ(life_of(earlier), WriterLife::kDead);
  WriterProcess before_reboot = self;
  before_reboot.host += "x";
  EXPECT_EQ(life_of(before_reboot), WriterLife::kDead);
  WriterProcess elsewhere = self;
  elsewhere.host = "another " + self.host;
  EXPECT_EQ(life_of(elsewhere), WriterLife::kUnknown);
}

TEST(TwoWriters, TakeTurns) {
  constexpr int kBatches = 30;
  for (int round = 0; round < 5; ++round) {  // each round both find no file and make it
    const sample::TemporaryFolder folder;
    const std::string path = folder.file("study.cpfit");
    const auto write = [&](const std::string& scenario) {
      return sample::start_child([&path, scenario] {
        Store store = open_store(path);
        const RunId run = create_run(store, sample::provenance(scenario));
        const CandidateSink sink = candidate_sink(store, run);
        for (int i = 0; i < kBatches; ++i) sink(sample::batch(i * 20, 20));
        finish_run(store, run, sample::plan_result());
      });
    };
    const int first = write("one"), second = write("two");
    EXPECT_EQ(sample::wait_for(first), 0);
    EXPECT_EQ(sample::wait_for(second), 0);
    const Store store = open_store(path);
    EXPECT_EQ(integrity(path), "ok");
    const std::vector<RunSummary> runs = list_runs(store);
    ASSERT_EQ(runs.size(), 2U);
    for (const RunSummary& run : runs) {
      EXPECT_EQ(run.status, RunStatus::kDone);
      EXPECT_EQ(run.stored_candidates, kBatches * 20);
    }
  }
}

TEST(NewDatabase, IsWholeFromTheMomentItIsThere) {
  for (int round = 0; round < 10; ++round) {
    const sample::TemporaryFolder folder;
    const std::string path = folder.file("study.cpfit");
    const int writer = sample::start_child([&path] { const Store store = open_store(path); });
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!std::filesystem::exists(path) && std::chrono::steady_clock::now() < patience) std::this_thread::yield();
    EXPECT_TRUE(list_runs(open_store(path, {.access = StoreAccess::kRead})).empty());  // an empty file would be refused
    EXPECT_EQ(sample::wait_for(writer), 0);
    for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(path).parent_path()))
      EXPECT_THAT(entry.path().filename().string(), testing::Not(HasSubstr(".new"))) << "left behind";
  }
}

}  // namespace
}  // namespace cpfit
