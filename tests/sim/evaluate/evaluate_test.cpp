#include "sim/evaluate/score.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "model/rates/gpu_rates.h"
#include "sim/evaluate/eager_host.h"
#include "sim/evaluate/evaluate.h"
#include "sim/evaluate/possible_recipes.h"

namespace cpfit {
namespace {

ValidationRow row_of(double measured, double predicted, double low, double high, const std::string& group = "a") {
  ValidationRow row{};
  row.metric = Metric::kStepSeconds;
  row.measured = measured;
  row.predicted = predicted;
  row.low = low;
  row.high = high;
  row.error = predicted / measured - 1;
  row.group = group;
  return row;
}

TEST(Score, SummaryOfFourRows) {
  // Errors +10 %, -20 %, +30 %, -40 %.
  const std::vector<ValidationRow> rows = {row_of(10, 11, 9, 12), row_of(10, 8, 7, 9), row_of(10, 13, 10, 15),
                                           row_of(10, 6, 5, 7)};
  const auto summary = summarize(rows);
  ASSERT_EQ(summary.size(), 1u);
  EXPECT_EQ(summary[0].rows, 4);
  EXPECT_NEAR(summary[0].mape, 0.25, 1e-12);              // (10 + 20 + 30 + 40) / 4
  EXPECT_NEAR(summary[0].median_abs_error, 0.25, 1e-12);  // (20 + 30) / 2
  EXPECT_NEAR(summary[0].max_abs_error, 0.4, 1e-12);
  EXPECT_NEAR(summary[0].bias, -0.05, 1e-12);    // signed middle two: -20 and +10
  EXPECT_NEAR(summary[0].coverage, 0.5, 1e-12);  // 10 lies in [9, 12] and in [10, 15]
}

TEST(Score, MedianOfAnOddCountIsTheMiddleOne) {
  const std::vector<ValidationRow> rows = {row_of(10, 11, 0, 0), row_of(10, 12, 0, 0), row_of(10, 40, 0, 0)};
  EXPECT_NEAR(summarize(rows)[0].median_abs_error, 0.2, 1e-12);
}

TEST(Score, GroupsAreScoredApartAndOneGroupIsNone) {
  const std::vector<ValidationRow> rows = {row_of(10, 11, 0, 0, "healthy"), row_of(10, 30, 0, 0, "sick")};
  const auto groups = summarize_groups(rows);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].group, "healthy");
  EXPECT_NEAR(groups[1].summary[0].mape, 2.0, 1e-12);
  EXPECT_TRUE(summarize_groups({rows[0]}).empty());
}

TEST(Score, VerdictCounts) {
  OutOfMemoryScore score;
  count_verdict(score, false, Fit::kFits);    // right
  count_verdict(score, true, Fit::kOom);      // right
  count_verdict(score, true, Fit::kFits);     // dead called fitting
  count_verdict(score, false, Fit::kOom);     // live called dead
  count_verdict(score, true, Fit::kAtRisk);   // neither
  count_verdict(score, false, Fit::kAtRisk);  // neither
  EXPECT_EQ(score, (OutOfMemoryScore{6, 4, 2, 2, 1, 1}));
}

/// A small Llama on two nodes of eight; tokens per step 16 * 2048.
MeasuredRun small_run() {
  MeasuredRun run;
  run.line = 2;
  Architecture& model = run.scenario.model;
  model.layers = 8;
  model.hidden = 2048;
  model.ffn_hidden = 8192;
  model.heads = model.kv_heads = 16;
  model.head_dim = 128;
  model.vocab = 32000;
  run.scenario.cluster = build_cluster("dgx-h100", 1).value();
  run.scenario.training.sequence = Tokens(2048);
  run.scenario.training.global_batch = 16;
  run.scenario.base.dp = 8;
  run.gpus = 8;
  run.peak_flops_for_mfu = 1e15;
  return run;
}

const ValidationRow* find(const ValidationResult& result, Metric metric) {
  for (const auto& row : result.rows) {
    if (row.metric == metric) return &row;
  }
  return nullptr;
}

TEST(Evaluate, RatesAndTimesOfOneRunAgree) {
  MeasuredRun run = small_run();
  run.measured = {
      {Metric::kStepSeconds, 1.0}, {Metric::kTokensPerSecondPerGpu, 1.0}, {Metric::kTflopsPerGpu, 1.0}, {Metric::kMfu, 1e-3}};
  MeasuredTable table;
  table.runs = {run};
  const auto result = evaluate(table, RateSet::defaults());
  ASSERT_EQ(result.rows.size(), 4u) << (result.skipped.empty() ? "" : result.skipped[0].reason);
  const double step = find(result, Metric::kStepSeconds)->predicted;
  const double tokens = find(result, Metric::kTokensPerSecondPerGpu)->predicted;
  EXPECT_NEAR(tokens * step, 16 * 2048 / 8.0, 1e-6);  // tokens of a step per GPU
  const double flops = training_flops_per_token(run.scenario.model, Tokens(2048), run.flops).value();
  EXPECT_NEAR(find(result, Metric::kTflopsPerGpu)->predicted, tokens * flops / 1e12, 1e-6);
  EXPECT_NEAR(find(result, Metric::kMfu)->predicted, tokens * flops / 1e15, 1e-9);
  EXPECT_LE(find(result, Metric::kTokensPerSecondPerGpu)->low, tokens);
  EXPECT_GE(find(result, Metric::kTokensPerSecondPerGpu)->high, tokens);
}

TEST(Evaluate, DocumentedStallAndLayerFloorAddToTheStep) {
  MeasuredRun run = small_run();
  run.measured = {{Metric::kStepSeconds, 1.0}};
  MeasuredRun stalled = run;
  stalled.extra_seconds = 2.5;
  MeasuredRun floored = run;
  floored.forward_floor = Seconds(6);  // far above the work: 8 layers, 2 micro-batches per rank
  floored.backward_floor = Seconds(4);
  MeasuredRun late_forward = run, later_forward = run;
  late_forward.forward_floor = Seconds(6);
  later_forward.forward_floor = Seconds(7);
  MeasuredTable table;
  table.runs = {run, stalled, floored, late_forward, later_forward};
  const auto result = evaluate(table, RateSet::defaults());
  ASSERT_EQ(result.rows.size(), 5u);
  EXPECT_NEAR(result.rows[1].predicted - result.rows[0].predicted, 2.5, 1e-9);
  EXPECT_GE(result.rows[2].predicted, 8 * 2 * 10.0);
  EXPECT_LT(result.rows[2].predicted, 8 * 2 * 10.0 + result.rows[0].predicted);
  // A late forward leaves backward what it was: two thirds of the work at least come on top.
  EXPECT_NEAR(result.rows[4].predicted - result.rows[3].predicted, 8 * 2 * 1.0, 1e-9);
  EXPECT_GT(result.rows[3].predicted, 8 * 2 * 6.0 + 0.6 * result.rows[0].predicted);
  EXPECT_LT(result.rows[3].predicted, 8 * 2 * 6.0 + result.rows[0].predicted);
}

// Held blocks are reserved, not allocated: 40 bytes for each of 2,048 tokens and 2,048 hidden elements.
TEST(Evaluate, HeldBlocksAreReservedAlone) {
  MeasuredRun run = small_run();
  run.measured = {{Metric::kReservedBytes, 1.0}, {Metric::kPeakBytes, 1.0}};
  MeasuredRun holding = run;
  holding.line = 3;
  holding.held_hidden_bytes = 40;
  MeasuredTable table;
  table.runs = {run, holding};
  const auto result = evaluate(table, RateSet::defaults());
  ASSERT_EQ(result.rows.size(), 4u);
  EXPECT_NEAR(result.rows[2].predicted - result.rows[0].predicted, 40.0 * 2048 * 2048, 1.0);
  EXPECT_EQ(result.rows[3].predicted, result.rows[1].predicted);
}

// When the device is full the allocator gives back what nobody uses: reserved bytes then lie between the allocated ones and what
// the device has beside context and communicators, however much was held before.
TEST(Evaluate, ReservedBytesEndAtTheDevice) {
  MeasuredRun run = small_run();
  run.measured = {{Metric::kReservedBytes, 1.0}, {Metric::kPeakBytes, 1.0}};
  const double usable = run.scenario.cluster.gpu.memory_usable.value();
  MeasuredRun full = run, fuller = run;
  full.held_hidden_bytes = usable / (2048.0 * 2048);
  fuller.held_hidden_bytes = 2 * full.held_hidden_bytes;
  MeasuredTable table;
  table.runs = {run, full, fuller};
  const auto result = evaluate(table, RateSet::defaults());
  ASSERT_EQ(result.rows.size(), 6u);
  const double peak = result.rows[1].predicted, room = 2 * result.rows[2].predicted - peak;
  EXPECT_LT(room, usable);
  EXPECT_GT(room, 0.9 * usable);
  EXPECT_EQ(result.rows[2].high, room);
  EXPECT_LT(result.rows[2].low, peak);
  EXPECT_EQ(result.rows[4].predicted, result.rows[2].predicted);
  EXPECT_LT(result.rows[0].predicted, 1.25 * peak) << "and is what it was while there is room";
}

// Ten collectives share a layer's latency. Once it is far longer than the products that some of them hide behind, every further
// second of one shows ten times in a layer, and ten times at the ends: four gathers and scatters, three all-reduces twice round.
TEST(Evaluate, LatencyOfTensorParallelismIsPaidByEveryCollective) {
  MeasuredRun run = small_run();
  run.measured = {{Metric::kStepSeconds, 1.0}};
  run.scenario.base.tp = 2;
  run.scenario.base.dp = 4;
  run.scenario.base.sequence_parallel = true;
  MeasuredRun late = run, later = run;
  late.layer_latency = Seconds(10.0);  // a second each, far more than the products take
  later.layer_latency = Seconds(20.0);
  MeasuredTable table;
  table.runs = {run, late, later};
  const auto result = evaluate(table, RateSet::defaults());
  ASSERT_EQ(result.rows.size(), 3u) << (result.skipped.empty() ? "" : result.skipped[0].reason);
  const double micro_batches = 4, of_layers = 8 * 10, of_ends = 4 + 3 * 2;
  EXPECT_NEAR(result.rows[2].predicted - result.rows[1].predicted, micro_batches * (of_layers + of_ends), 1e-6);
}

TEST(Evaluate, MeasuredLatencyIsPaidByEveryReductionAtEveryNode) {
  MeasuredRun run = small_run();
  run.scenario.cluster = build_cluster("dgx-h100", 4).value();
  run.scenario.base.dp = 32;
  run.gpus = 32;
  run.scenario.training.global_batch = 64;
  run.scenario.base.state_sharding = StateSharding::kNone;
  run.scenario.base.overlap_grad_reduce = run.scenario.base.overlap_param_gather = false;
  run.measured = {{Metric::kStepSeconds, 1.0}};
  run.bus_rate = gb_per_s(180);
  MeasuredRun late = run, gathers = run;
  late.border_latency_all_reduce = gathers.border_latency_all_reduce = Seconds(0.5);
  gathers.border_latency = Seconds(9);  // no gather and no scatter where nothing is sharded
  MeasuredRun sharded = run, sharded_late = gathers;
  sharded.scenario.base.state_sharding = sharded_late.scenario.base.state_sharding = StateSharding::kZero1;
  MeasuredTable table;
  table.runs = {run, late, gathers, sharded, sharded_late};
  const auto result = evaluate(table, RateSet::defaults());
  ASSERT_EQ(result.rows.size(), 5u);
  const double more = result.rows[1].predicted - result.rows[0].predicted;
  // 4 nodes of half a second: without overlap Megatron cuts no buckets.
  EXPECT_NEAR(more, 4 * 0.5, 1e-6);
  EXPECT_NEAR(result.rows[2].predicted, result.rows[1].predicted, 1e-9);
  // Sharded: a scatter, and one gather of all parameters before the step.
  EXPECT_NEAR(result.rows[4].predicted - result.rows[3].predicted, 2 * 4 * 9, 1e-6);
  // Where buckets are cut all the same, each pays: 8 layers of 4 h^2 + 3 h f and two tables of 32,000 rows, 4 bytes each.
  const double gradients = 4.0 * (8 * (4.0 * 2048 * 2048 + 3.0 * 2048 * 8192) + 2.0 * 32000 * 2048);
  RuleSet cut = find_framework(run.scenario.base.framework).value();
  cut.buckets_on_every_stage = true;
  const double buckets = std::round(gradients / gradient_bucket(cut, 32).value());
  run.rules = late.rules = std::make_shared<const RuleSet>(cut);
  MeasuredTable in_buckets;
  in_buckets.runs = {run, late};
  const auto each = evaluate(in_buckets, RateSet::defaults());
  EXPECT_NEAR(each.rows[1].predicted - each.rows[0].predicted, buckets * 4 * 0.5, 1e-6);
}

TEST(Evaluate, FiguresAboveThePeakAreSkipped) {
  MeasuredRun run = small_run();
  run.measured = {{Metric::kStepSeconds, 1e-6}};
  MeasuredTable table;
  table.runs = {run};
  const auto result = evaluate(table, RateSet::defaults());
  EXPECT_TRUE(result.rows.empty());
  ASSERT_EQ(result.skipped.size(), 1u);
  EXPECT_EQ(result.skipped[0].reason, "exceeds peak");
}

TEST(Evaluate, CountsTheVerdictOnlyWhereRunsDied) {
  MeasuredRun lived = small_run(), died = small_run();
  lived.died = false;
  lived.measured = {{Metric::kStepSeconds, 1.0}};
  died.died = true;
  died.scenario.training.sequence = Tokens(1 << 20);
  died.scenario.base.micro_batch = 2;
  MeasuredTable only_lived, both;
  only_lived.runs = {lived};
  both.runs = {lived, died};
  EXPECT_FALSE(evaluate(only_lived, RateSet::defaults()).out_of_memory.has_value());
  const auto score = evaluate(both, RateSet::defaults()).out_of_memory;
  ASSERT_TRUE(score.has_value());
  EXPECT_EQ(score->rows, 2);
  EXPECT_EQ(score->right, 2);  // a million tokens per GPU without recompute cannot fit; the small run can
}

TEST(PossibleRecipes, UnknownFieldsAreEnumeratedOverWhatDivides) {
  MeasuredRun run = small_run();
  const RuleSet rules = find_framework("megatron-core").value();
  EXPECT_EQ(possible_recipes(run, rules).size(), 1u);
  run.unknown = {"recompute"};
  EXPECT_EQ(possible_recipes(run, rules).size(), 2u);  // none, full: the flash kernel leaves selective nothing to drop
  run.unknown = {"micro_batch"};
  EXPECT_EQ(possible_recipes(run, rules).size(), 2u);  // 16 sequences on dp 8: 1 or 2
  run.unknown = {"vpp"};
  run.scenario.base.pp = 2;
  run.scenario.base.dp = 4;
  std::set<std::int32_t> vpps;
  for (const Recipe& recipe : possible_recipes(run, rules)) vpps.insert(recipe.vpp);
  EXPECT_EQ(vpps, (std::set<std::int32_t>{1, 2, 4, 5}));  // 8 / 2 = 4 layers; or (8 + 2) / 2 = 5 slots
  run.unknown = {"a2a_degree"};
  run.scenario.base.pp = 1;
  run.scenario.base.dp = 1;
  run.scenario.base.cp = 8;
  run.scenario.model.heads = 12;
  std::set<std::pair<std::int32_t, CpComm>> splits;
  for (const Recipe& recipe : possible_recipes(run, rules)) splits.insert({recipe.a2a_degree, recipe.cp_comm});
  EXPECT_EQ(splits, (std::set<std::pair<std::int32_t, CpComm>>{
                        {1, CpComm::kP2p}, {2, CpComm::kA2aP2p}, {4, CpComm::kA2aP2p}}));  // 12 heads are not cut by 8
}

/// Causal attention of 8 ranks on one node, as an author times it.
MeasuredKernel operator_of(std::int64_t tokens, std::int32_t exchange) {
  MeasuredKernel kernel;
  kernel.kind = KernelKind::kDistributedAttention;
  kernel.library = AttentionLibrary::kFlash2;
  kernel.cluster = build_cluster("dgx-a100", 1).value();
  kernel.seconds = 1;
  kernel.forward = true;
  kernel.attention.q_len = kernel.attention.kv_len = tokens;
  kernel.attention.pairs = 0.5 * static_cast<double>(tokens) * static_cast<double>(tokens + 1);
  kernel.attention.heads = kernel.attention.kv_heads = 32;
  kernel.attention.head_dim = 128;
  kernel.attention.causal = true;
  kernel.recipe.cp = 8;
  kernel.recipe.a2a_degree = exchange;
  kernel.recipe.cp_comm = exchange == 8 ? CpComm::kA2a : CpComm::kP2p;
  kernel.recipe.framework = "ring-flash-attention";
  kernel.rules = std::make_shared<const RuleSet>(find_framework("ring-flash-attention").value());
  return kernel;
}

double predicted(MeasuredKernel kernel) {
  MeasuredTable table;
  table.kernels = {std::move(kernel)};
  const ValidationResult result = evaluate(table, RateSet::defaults());
  return result.rows.empty() ? 0.0 : result.rows[0].predicted;
}

// Calls one after another run at the power limit: what that takes from long kernels of the table, it takes from short ones too.
TEST(Kernel, CallsOneAfterAnotherRunWarm) {
  MeasuredKernel kernel;
  kernel.kind = KernelKind::kGemm;
  kernel.cluster = build_cluster("dgx-b200", 1).value();
  kernel.gemms = {{4096, 4096, 4096}};
  kernel.seconds = 1;
  const double cold = predicted(kernel);
  kernel.warm = 1;
  const RateSet rates = RateSet::defaults();
  const GpuRates& gpu = rates.of(kernel.cluster.gpu);
  const GemmCurve& curve = gpu.gemm[static_cast<std::size_t>(MathKind::kBf16)].curve;
  // 4096^3 is some 80 us, far below `sustained`: cold it loses next to nothing.
  EXPECT_GT(curve.sustained, 2e-3);
  EXPECT_NEAR((predicted(kernel) - curve.launch) / (cold - curve.launch), 1 + curve.sustained_loss, 0.01);
}

TEST(Operator, AShortOneTakesTheTimeOfItsLaunches) {
  MeasuredKernel kernel = operator_of(1024, 8);
  const RateSet rates = RateSet::defaults();
  const EagerHost host = eager_host(kernel, rates.of(kernel.cluster.gpu));
  EXPECT_DOUBLE_EQ(predicted(kernel), host.whole);
  // One exchange of four is after attention; packed, the three before it are one.
  const double exchange = host.whole - host.before;
  kernel.packed_qkv = true;
  EXPECT_NEAR(host.whole - predicted(kernel), 2 * exchange, 1e-9);
  kernel.forward = false;
  kernel.backward = true;
  EXPECT_GT(predicted(kernel), 0.0);
}

TEST(Operator, AWaitingHostAddsWhatItQueuesBeforeTheFirstKernel) {
  MeasuredKernel kernel = operator_of(131072, 8);
  const double free = predicted(kernel);
  const RateSet rates = RateSet::defaults();
  const EagerHost host = eager_host(kernel, rates.of(kernel.cluster.gpu));
  ASSERT_GT(free, host.whole);
  kernel.synchronized = true;
  EXPECT_DOUBLE_EQ(predicted(kernel), free + host.before);
}

/// K of one GPU: 131072 tokens over 8 ranks, 32 heads of 128.
constexpr double kElementsOfK = 131072.0 / 8 * 32 * 128;

/// Seconds that streaming kernels take for `bytes`.
double streamed(const RateSet& rates, const MeasuredKernel& kernel, double bytes, int kernels) {
  return memory_time(rates.of(kernel.cluster.gpu), Bytes(bytes), kernels).time.value();
}

// zhuzilin's kvpacked calls: copies of K and of V; zeros as large as both for the gradient of each, a copy into them, their sum.
TEST(Operator, SlicesOfPackedKvAreCopiedAndTheirGradientsEmbedded) {
  MeasuredKernel kernel = operator_of(131072, 1);
  kernel.backward = true;
  const double apart = predicted(kernel);
  kernel.packed_kv = true;
  const RateSet rates = RateSet::defaults();
  const double copies = 2 * (2 + 2) * kElementsOfK, zeros = 2 * 2 * 2 * kElementsOfK, sum = 3 * 2 * 2 * kElementsOfK;
  const double added = streamed(rates, kernel, copies, 2) + streamed(rates, kernel, zeros + copies + sum, 5);
  EXPECT_NEAR(predicted(kernel) - apart, added, 1e-6 * apart);
}

// Seven steps gather halves of K and V; in backward fp32 halves of dK and dV are gathered and put back, and the GPU idles longer.
TEST(Operator, IndexedHalvesWaitForTheHostInEveryStep) {
  MeasuredKernel kernel = operator_of(131072, 1);
  const RateSet rates = RateSet::defaults();
  const auto added = [&] {
    MeasuredKernel sliced = kernel;
    sliced.indexed_halves = false;
    return predicted(kernel) - predicted(sliced);
  };
  kernel.indexed_halves = true;
  const double idle_forward = eager_host(kernel, rates.of(kernel.cluster.gpu)).idle;
  EXPECT_GT(idle_forward, 0);
  const double halves = 2 * 0.5 * (2 + 2) * kElementsOfK, sums = 2 * 2 * 0.5 * (4 + 4) * kElementsOfK;
  EXPECT_NEAR(added(), idle_forward + 7 * streamed(rates, kernel, halves, 2), 1e-8);
  kernel.forward = false;
  kernel.backward = true;
  const double idle_backward = eager_host(kernel, rates.of(kernel.cluster.gpu)).idle;
  EXPECT_GT(idle_backward, 2 * idle_forward);
  EXPECT_NEAR(added(), idle_backward + 7 * streamed(rates, kernel, halves + sums, 6), 1e-8);
}

TEST(Operator, PackingsAreTakenInTurn) {
  MeasuredKernel kernel = operator_of(131072, 1);
  const double whole = predicted(kernel);
  kernel.packings = {{{131072, 1.0}}};
  EXPECT_NEAR(predicted(kernel), whole, 1e-9 * whole);
  kernel.packings = {{{65536, 2.0}}};
  const double halves = predicted(kernel);
  EXPECT_LT(halves, 0.7 * whole);  // half of the pairs, the same merges
  kernel.packings = {{{131072, 1.0}}, {{65536, 2.0}}};
  EXPECT_NEAR(predicted(kernel), (whole + halves) / 2, 1e-9 * whole);
}

}  // namespace
}  // namespace cpfit
