// The nanotron sweep: groups, stalls and what its jobs measured of their own cluster.
#include <gtest/gtest.h>

#include "calibrate/read/published.h"
#include "tests/calibrate/published_fixture.h"

namespace cpfit {
namespace {

using test::Cells;
using test::measured;
using test::read_rows;
using test::training_columns;

const std::vector<std::string> kSweep = training_columns(
    {"status", "grad_accum", "mem_alloc_gib", "mem_reserved_gib", "ar_intranode", "ag_intranode", "allreduce_busbw_gbps",
     "reducescatter_busbw_gbps", "after_pp_fix", "tied_embeddings", "local_params_reported"});

constexpr double kBetweenSteps = 0.02;  // s, host work that every run of the sweep has

/// A sweep row of our own: 4 layers of hidden 1024 on tp 2, pp 2, dp 2, two micro-batches of 3 sequences of 4096 tokens.
Cells sweep_row() {
  return {{"gpu", "H100"},
          {"nodes_or_gpus", "8"},
          {"model", "Llama-style 0.1G"},
          {"layers", "4"},
          {"hidden", "1024"},
          {"ffn_hidden", "4096"},
          {"heads", "8"},
          {"vocab", "131072"},
          {"seq_len", "4096"},
          {"micro_batch", "3"},
          {"global_batch", "12"},
          {"tp", "2"},
          {"pp", "2"},
          {"cp", "1"},
          {"dp", "2"},
          {"sharding", "ZeRO-1"},
          {"precision", "bf16"},
          {"status", "Success"},
          {"grad_accum", "2"},
          {"tokens_per_s_per_gpu", "1000"},
          {"mem_alloc_gib", "2"},
          {"mem_reserved_gib", "3"},
          {"ar_intranode", "424"},
          {"after_pp_fix", "True"},
          {"tied_embeddings", "True"}};
}

TEST(PublishedSweep, BatchIsInSequencesOrInTokens) {
  Cells dead = sweep_row();
  dead["status"] = "OOM";
  dead["global_batch"] = "49152";  // 12 sequences of 4096 tokens
  Cells neither = sweep_row();
  neither["global_batch"] = "100";
  const MeasuredTable table = read_rows(kSweep, {sweep_row(), dead, neither});
  ASSERT_EQ(table.runs.size(), 2u);
  EXPECT_EQ(table.runs[0].scenario.training.global_batch, 12);
  EXPECT_EQ(table.runs[1].scenario.training.global_batch, 12);
  EXPECT_EQ(table.runs[0].died, false);
  EXPECT_EQ(table.runs[1].died, true);
  ASSERT_EQ(table.skipped.size(), 1u);
  EXPECT_EQ(table.skipped[0].line, 4);
}

TEST(PublishedSweep, MemoryFiguresAreResidentAndReservedOfTheFirstStage) {
  const MeasuredTable table = read_rows(kSweep, {sweep_row()});
  ASSERT_EQ(table.runs.size(), 1u);
  EXPECT_EQ(measured(table.runs[0], Metric::kResidentBytes), 2 * kGiB);
  EXPECT_EQ(measured(table.runs[0], Metric::kReservedBytes), 3 * kGiB);
  EXPECT_EQ(measured(table.runs[0], Metric::kPeakBytes), -1);
  EXPECT_EQ(table.runs[0].memory_stage, 0);
}

TEST(PublishedSweep, PrintedParametersOfTheFirstStageSayWhetherItHoldsALayer) {
  Cells layer = sweep_row();
  layer["layers"] = "1";
  layer["local_params_reported"] = "75.5M";  // embedding 131072 * 1024 / 2 = 67.1 M, layer (4 + 3 * 4) * 1024^2 / 2 = 8.4 M
  Cells alone = layer;
  alone["local_params_reported"] = "67.1M";
  Cells full = alone;
  full["layers"] = "16";  // both stages hold layers: what is printed is another rank's
  const MeasuredTable table = read_rows(kSweep, {layer, alone, full});
  ASSERT_EQ(table.runs.size(), 3u);
  EXPECT_EQ(table.runs[0].scenario.base.stage_layout.layers, (std::vector<std::int32_t>{1, 0}));
  EXPECT_EQ(table.runs[1].scenario.base.stage_layout.layers, (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(table.runs[2].scenario.base.stage_layout.layers, (std::vector<std::int32_t>{12, 4}));
}

TEST(PublishedSweep, UnrepairedPipelineStallsPerMicroBatchAndIsItsOwnGroup) {
  Cells before = sweep_row();
  before["after_pp_fix"] = "False";
  Cells sick = sweep_row();
  sick["ar_intranode"] = "45";
  Cells single = before;
  single["pp"] = "1";
  single["dp"] = "4";
  single["global_batch"] = "24";  // 3 * 2 * 4
  const MeasuredTable table = read_rows(kSweep, {sweep_row(), before, sick, single});
  ASSERT_EQ(table.runs.size(), 4u);
  EXPECT_EQ(table.runs[0].group, "healthy");
  EXPECT_EQ(table.runs[0].extra_seconds, kBetweenSteps);
  EXPECT_EQ(table.runs[1].group, "before pipeline repair");
  EXPECT_DOUBLE_EQ(table.runs[1].extra_seconds, kBetweenSteps + 2 * 0.52);  // two micro-batches at pp 2
  EXPECT_EQ(table.runs[2].group, "stalled or sick node");
  EXPECT_EQ(table.runs[2].extra_seconds, kBetweenSteps);
  EXPECT_EQ(table.runs[3].group, "healthy");  // no pipeline, nothing to repair
  EXPECT_EQ(table.runs[3].extra_seconds, kBetweenSteps);
}

// The two jobs of the repaired campaign that the column counts to those before it, and the one ahead of them.
TEST(PublishedSweep, RepairedRunsBeginWithTheirCampaign) {
  Cells first = sweep_row();
  first["after_pp_fix"] = "False";
  first["source_location"] = "raw CSV stored in bench.csv @317a2cbd job 14097146";
  Cells last = first;
  last["source_location"] = "raw CSV stored in bench.csv @317a2cbd job 14097145";
  const MeasuredTable table = read_rows(kSweep, {first, last});
  ASSERT_EQ(table.runs.size(), 2u);
  EXPECT_EQ(table.runs[0].group, "healthy");
  EXPECT_EQ(table.runs[1].group, "before pipeline repair");
}

/// Eight micro-batches whose work takes 0.12 s: nine turns of three layers at the host's pace, and a step of so many seconds.
Cells eight_micro_batches(double step) {
  Cells row = sweep_row();
  row["grad_accum"] = "8";
  row["global_batch"] = "48";
  row["tokens_per_s_per_gpu"] = std::to_string(48 * 4096 / 8 / step);
  return row;
}

// A repaired run whose step holds the unrepaired pipeline's stall, 0.52 s a micro-batch, ran the unrepaired one. A slow step that
// is no such stall stays where it is: less than three quarters of it, more than one and a half, or none at all to speak of beside
// the work; so do runs without a pipeline, or of fewer micro-batches than stages.
TEST(PublishedSweep, ARepairedRunWithTheOldStallIsRecognisedByItsOwnStep) {
  Cells single = eight_micro_batches(4.3);
  single["pp"] = "1";
  single["dp"] = "4";
  single["global_batch"] = "96";
  single["tokens_per_s_per_gpu"] = std::to_string(96 * 4096 / 8 / 4.3);
  Cells few = sweep_row();
  few["grad_accum"] = "1";
  few["global_batch"] = "6";
  few["tokens_per_s_per_gpu"] = std::to_string(6 * 4096 / 8 / 0.54);
  Cells large = eight_micro_batches(8.2);  // 64 layers, 33 on the first stage: 9 x 33 x 4.4 ms of work
  large["layers"] = "64";
  const MeasuredTable table = read_rows(kSweep, {eight_micro_batches(4.3), eight_micro_batches(0.2), eight_micro_batches(2.9),
                                                 eight_micro_batches(6.6), single, few, large});
  ASSERT_EQ(table.runs.size(), 7u);
  EXPECT_EQ(table.runs[0].group, "stalled or sick node");
  EXPECT_DOUBLE_EQ(table.runs[0].extra_seconds, kBetweenSteps + 8 * 0.52);
  EXPECT_NE(table.runs[0].conditions.back().find("recognised by the measured step"), std::string::npos);
  for (std::size_t i = 1; i < table.runs.size(); ++i) {
    EXPECT_EQ(table.runs[i].group, "healthy") << i;
    EXPECT_EQ(table.runs[i].extra_seconds, kBetweenSteps) << i;
  }
}

TEST(PublishedSweep, RepairedPipelinesReserveWhatTheirCollectivesHold) {
  Cells four = sweep_row();
  four["nodes_or_gpus"] = "16";
  four["pp"] = "4";
  Cells before = four, state_a = four, single = four;
  before["after_pp_fix"] = "False";
  state_a["ar_intranode"] = "455";
  single["tp"] = "1";
  single["dp"] = "4";
  single["global_batch"] = "24";
  const MeasuredTable table = read_rows(kSweep, {four, before, state_a, single, sweep_row()});
  ASSERT_EQ(table.runs.size(), 5u);
  EXPECT_EQ(table.runs[0].held_hidden_bytes, 56);
  for (std::size_t i = 1; i < table.runs.size(); ++i) EXPECT_EQ(table.runs[i].held_hidden_bytes, 0) << i;
}

TEST(PublishedSweep, ClusterStateChoosesTheRuleSet) {
  Cells state_a = sweep_row();
  state_a["ar_intranode"] = "455";
  Cells tree = sweep_row();  // over eight nodes the rate over all of them tells the state too
  tree["nodes_or_gpus"] = "64";
  tree["dp"] = "16";
  tree["global_batch"] = "96";
  tree["allreduce_busbw_gbps"] = "177";
  Cells ring = tree;
  ring["allreduce_busbw_gbps"] = "97";
  const MeasuredTable table = read_rows(kSweep, {sweep_row(), state_a, tree, ring});
  ASSERT_EQ(table.runs.size(), 4u);
  EXPECT_EQ(table.runs[0].scenario.base.framework, "nanotron");
  EXPECT_EQ(table.runs[1].scenario.base.framework, "nanotron-cached-tp");
  EXPECT_EQ(table.runs[2].scenario.base.framework, "nanotron-cached-tp");
  EXPECT_EQ(table.runs[3].scenario.base.framework, "nanotron");
}

TEST(PublishedSweep, TensorParallelRowsCarryWhatTheirClusterMeasured) {
  Cells node = sweep_row();  // 8 GPUs
  node["ag_intranode"] = "242";
  Cells nodes = node;
  nodes["nodes_or_gpus"] = "64";
  nodes["tp"] = "16";
  Cells state_a = nodes;
  state_a["ar_intranode"] = "455";
  Cells alone = node;
  alone["tp"] = "1";
  alone["dp"] = "4";
  alone["global_batch"] = "24";
  Cells inside = nodes;  // tp 8 within nodes, of which there are eight: the slowest of four times two hosts
  inside["tp"] = "8";
  inside["dp"] = "4";
  inside["global_batch"] = "24";
  const MeasuredTable table = read_rows(kSweep, {node, nodes, state_a, alone, inside});
  ASSERT_EQ(table.runs.size(), 5u);
  EXPECT_EQ(table.runs[0].forward_floor.value(), 0);  // the host alone, which its rule set has
  EXPECT_DOUBLE_EQ(table.runs[0].domain_rate.value(), 242e9);
  // 15 ring steps of 0.275 ms for each of four collectives forward and six backward, beside 6.1 ms of the host.
  EXPECT_NEAR(table.runs[1].forward_floor.value(), 3.05e-3 + 4 * 15 * 0.275e-3, 1e-12);
  EXPECT_NEAR(table.runs[1].backward_floor.value(), 3.05e-3 + 6 * 15 * 0.275e-3, 1e-12);
  EXPECT_EQ(table.runs[1].layer_latency.value(), 0);
  EXPECT_EQ(table.runs[2].forward_floor.value(), 0);
  EXPECT_NEAR(table.runs[2].layer_latency.value(), 10 * 15 * 34e-6 * 1.04, 1e-12);  // as the slowest of four pairs of nodes
  EXPECT_EQ(table.runs[3].forward_floor.value(), 0);                                // no messages within a layer
  EXPECT_EQ(table.runs[3].domain_rate.value(), 0);
  EXPECT_NEAR(table.runs[4].forward_floor.value(), (3.05e-3 + 4 * 7 * 0.215e-3) * 1.04, 1e-12);
}

TEST(PublishedSweep, CollectivesOfTheJobTellRateFromLatency) {
  Cells tree = sweep_row();  // 64 GPUs on 8 nodes
  tree["nodes_or_gpus"] = "64";
  tree["dp"] = "16";
  tree["global_batch"] = "96";  // 3 * 2 * 16
  tree["allreduce_busbw_gbps"] = "200";
  tree["reducescatter_busbw_gbps"] = "90";
  Cells ring = tree;
  ring["allreduce_busbw_gbps"] = "45";
  ring["reducescatter_busbw_gbps"] = "22.5";
  const MeasuredTable table = read_rows(kSweep, {tree, ring});
  ASSERT_EQ(table.runs.size(), 2u);
  const double wire = 268435456.0 * 63 / 64;
  EXPECT_DOUBLE_EQ(table.runs[0].bus_rate.value(), 200e9);
  EXPECT_EQ(table.runs[0].border_latency_all_reduce.value(), 0);
  EXPECT_NEAR(table.runs[0].border_latency.value(), wire / 180e9 / 8, 1e-9);  // twice the time at 180 GB/s, over 8 nodes
  // A quarter of 180 GB/s: three times the ring's own time is latency, of which an all-reduce shows both rounds.
  EXPECT_DOUBLE_EQ(table.runs[1].bus_rate.value(), 180e9);
  EXPECT_NEAR(table.runs[1].border_latency.value(), 3 * wire / 180e9 / 8, 1e-9);
  EXPECT_NEAR(table.runs[1].border_latency_all_reduce.value(), 2 * 3 * wire / 180e9 / 8, 1e-9);
}

}  // namespace
}  // namespace cpfit
