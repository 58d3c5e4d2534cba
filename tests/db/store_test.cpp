// Round trips: what is stored comes back as it was, field by field (records compare by value).
#include "db/store/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "db/query/runs.h"
#include "db/store/run_store.h"
#include "db/store/validation_store.h"
#include "sample_records.h"

namespace cpfit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class StoreTest : public ::testing::Test {
 protected:
  sample::TemporaryFolder folder_;
  std::string path_ = folder_.file("study.cpfit");
};

void expect_same_ledger(const StageLedger& read, const StageLedger& written) {
  EXPECT_EQ(read.summary, written.summary);
  EXPECT_EQ(read.entries, written.entries);
}

TEST_F(StoreTest, ResultComesBackWhole) {
  const PlanResult written = sample::plan_result();
  RunId run{};
  {
    Store store = open_store(path_);
    run = create_run(store, written.provenance);
    finish_run(store, run, written);
  }
  const Outcome<PlanResult> outcome = load_run(open_store(path_), run);
  ASSERT_TRUE(outcome.ok());
  const PlanResult& read = *outcome;
  EXPECT_EQ(read.provenance, written.provenance);
  EXPECT_TRUE(read.ships);
  EXPECT_EQ(read.ship, written.ship);
  EXPECT_TRUE(read.has_control);
  EXPECT_EQ(read.control, written.control);
  EXPECT_EQ(read.answer, written.answer);
  EXPECT_EQ(read.neighbours, written.neighbours);
  EXPECT_EQ(read.levers, written.levers);
  EXPECT_EQ(read.crossover, written.crossover);
  EXPECT_EQ(read.candidates, written.candidates);
  EXPECT_EQ(read.front, written.front);
  EXPECT_EQ(read.sweep, written.sweep);
  EXPECT_EQ(read.links, written.links);
  EXPECT_EQ(read.confirmations, written.confirmations);
  EXPECT_EQ(read.stats, written.stats);
  ASSERT_EQ(read.ledgers.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(read.ledgers[i].first, written.ledgers[i].first);
    expect_same_ledger(read.ledgers[i].second, written.ledgers[i].second);
  }
}

TEST_F(StoreTest, LedgerTextOutlivesTheResultItCameWith) {
  Store store = open_store(path_);
  const RunId run = create_run(store, sample::provenance());
  finish_run(store, run, sample::plan_result());
  StageLedger kept;
  {
    const Outcome<PlanResult> read = load_run(store, run);
    kept = read->ledgers.front().second;
  }
  EXPECT_EQ(kept.entries.front().tensor, "attention.qkv");
}

TEST_F(StoreTest, EveryChoiceOfARecipeComesBackLegalOrNot) {
  Candidate odd;  // a neighbour that breaks a rule is stored too: 5 is no multiple of 4, and nothing was evaluated
  odd.recipe.tp = 3;
  odd.recipe.cp = 5;
  odd.recipe.pp = 7;
  odd.recipe.vpp = 2;
  odd.recipe.schedule = Schedule::kInterleaved;
  odd.recipe.cp_comm = CpComm::kA2aP2p;
  odd.recipe.a2a_degree = 4;
  odd.recipe.shard_layout = ShardLayout::kStriped;
  odd.recipe.stage_layout = {LayoutKind::kExplicit, 0, 0, {1, 2, 3, 4}};
  odd.recipe.recompute = {RecomputeKind::kBlock, 5};
  odd.recipe.state_sharding = StateSharding::kZero3;
  odd.recipe.sequence_parallel = false;
  odd.recipe.precision = Precision::kMxfp8;
  odd.recipe.overlap_tp = true;
  odd.recipe.overlap_p2p = false;
  odd.recipe.rank_order = {{Axis::kTp, Axis::kCp, Axis::kPp, Axis::kDp}};
  odd.recipe.framework = "nanotron";
  odd.relative_sigma = std::numeric_limits<float>::infinity();
  Store store = open_store(path_);
  const RunId run = create_run(store, sample::provenance());
  candidate_sink(store, run)({odd});
  EXPECT_THAT(candidates_of(store, run), ElementsAre(odd));
}

TEST_F(StoreTest, NothingShipsIsAResultToo) {
  Store store = open_store(path_);
  PlanResult written;
  written.provenance = sample::provenance();
  written.answer = "Nothing fits.";
  const RunId run = create_run(store, written.provenance);
  finish_run(store, run, written);
  const Outcome<PlanResult> read = load_run(store, run);
  EXPECT_FALSE(read->ships);
  EXPECT_FALSE(read->has_control);
  EXPECT_EQ(read->answer, "Nothing fits.");
  EXPECT_TRUE(read->candidates.empty());
}

TEST_F(StoreTest, UnknownRunIsAProblemOfThePerson) {
  const Store store = open_store(path_);
  const Outcome<PlanResult> read = load_run(store, RunId{7});
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.problems().front().code, "run.unknown");
  EXPECT_THAT(read.problems().front().message, HasSubstr("no run 7"));
}

TEST_F(StoreTest, CandidatesComeInTheOrderAskedFor) {
  Store store = open_store(path_);
  const RunId run = create_run(store, sample::provenance());
  std::vector<Candidate> written = sample::batch(0, 6);
  written[4].reasons = {"first sentence", "second sentence"};
  written[5].differs = {"cp"};
  std::ranges::reverse(written);  // so that the order stored is none of the others
  candidate_sink(store, run)(written);
  EXPECT_EQ(candidates_of(store, run), written);

  CandidateQuery query;
  query.order = CandidateOrder::kStepSeconds;  // figures grow with the number of the candidate
  std::vector<Candidate> ascending = written;
  std::ranges::reverse(ascending);
  EXPECT_EQ(candidates_of(store, run, query), ascending);
  query.order = CandidateOrder::kDeviceBytes;
  EXPECT_EQ(candidates_of(store, run, query), ascending);
  query.order = CandidateOrder::kGpus;  // tp * cp * dp = 8 * (number + 1)
  EXPECT_EQ(candidates_of(store, run, query), ascending);
  query.order = CandidateOrder::kTokensPerSecondPerGpu;  // 1e6 / (number + 1), largest first
  EXPECT_EQ(candidates_of(store, run, query), ascending);

  query.fit = Fit::kAtRisk;  // numbers 1 and 4: number % 3 == 1
  query.offset = 1;
  query.limit = 5;
  EXPECT_THAT(candidates_of(store, run, query), ElementsAre(ascending[4]));
}

TEST_F(StoreTest, TablesShowWhatShippedAmongTheEvaluated) {
  Store store = open_store(path_);
  const RunId run = create_run(store, sample::provenance());
  candidate_sink(store, run)(sample::batch(9, 3));  // 9, 10 (ships), 11 (control)
  finish_run(store, run, sample::plan_result());
  const std::vector<Candidate> read = candidates_of(store, run);
  ASSERT_EQ(read.size(), 3U);  // none of those that the result added
  EXPECT_EQ(read[0].status, CandidateStatus::kOk);
  EXPECT_EQ(read[1].status, CandidateStatus::kShip);
  EXPECT_EQ(read[2].status, CandidateStatus::kControl);
}

TEST_F(StoreTest, ListShowsEveryRunYoungestFirst) {
  Store store = open_store(path_);
  const RunId done = create_run(store, sample::provenance());
  candidate_sink(store, done)(sample::batch(0, 5));
  finish_run(store, done, sample::plan_result());
  const RunId stopped = create_run(store, sample::provenance("other"));
  interrupt_run(store, stopped);
  const RunId going = create_run(store, sample::provenance("third"));
  const std::vector<RunSummary> runs = list_runs(store);
  ASSERT_EQ(runs.size(), 3U);
  EXPECT_EQ(runs[0].run, going);
  EXPECT_EQ(runs[0].status, RunStatus::kRunning);
  EXPECT_FALSE(runs[0].finished_unix_seconds.has_value());
  EXPECT_FALSE(runs[0].ship_step_seconds.has_value());
  EXPECT_EQ(runs[1].status, RunStatus::kInterrupted);
  EXPECT_EQ(runs[2].run, done);
  EXPECT_EQ(runs[2].status, RunStatus::kDone);
  EXPECT_TRUE(runs[2].finished_unix_seconds.has_value());
  EXPECT_EQ(runs[2].stored_candidates, 5);
  EXPECT_EQ(runs[2].scenario_name, "llama 8B, 128k");
  const PlanResult result = sample::plan_result();
  EXPECT_EQ(runs[2].ship, to_text(result.ship.recipe));
  EXPECT_EQ(runs[2].control, to_text(result.control.recipe));
  EXPECT_EQ(runs[2].ship_step_seconds, result.ship.time.step().value());
}

TEST_F(StoreTest, ValidationComesBackWhole) {
  const ValidationResult written = sample::validation_result();
  Store store = open_store(path_);
  const ValidationId id = save_validation(store, written, "0.1.0", "2025-11");
  ValidationResult none;
  none.path = "empty.csv";
  const ValidationId empty = save_validation(store, none, "0.1.0", "2025-11");
  EXPECT_EQ(*load_validation(store, id), written);
  EXPECT_EQ(*load_validation(store, empty), none);
  EXPECT_EQ(load_validation(store, ValidationId{99}).problems().front().code, "validation.unknown");

  const std::vector<ValidationListing> listings = list_validations(store);
  ASSERT_EQ(listings.size(), 2U);
  EXPECT_EQ(listings[1].id, id);
  EXPECT_EQ(listings[1].path, "published/megatron.csv");
  EXPECT_EQ(listings[1].rows, 2);
  EXPECT_EQ(listings[1].skipped, 2);
}

TEST_F(StoreTest, AFigureThatIsNoNumberIsRefusedAndNamed) {
  Store store = open_store(path_);
  const RunId run = create_run(store, sample::provenance());
  const CandidateSink sink = candidate_sink(store, run);
  std::vector<Candidate> batch = sample::batch(0, 3);
  batch[1].mfu = std::numeric_limits<double>::quiet_NaN();
  try {
    sink(batch);
    FAIL() << "stored a NaN";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("candidate.mfu_share"));
  }
  EXPECT_TRUE(candidates_of(store, run).empty());  // the batch is whole or absent
  sink(sample::batch(0, 3));                       // and the sink goes on
  EXPECT_EQ(candidates_of(store, run).size(), 3U);
}

}  // namespace
}  // namespace cpfit
