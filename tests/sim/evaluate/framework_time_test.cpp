// What a rule set's policies on time add to a measured run's prediction, each against a figure worked out here.
#include <gtest/gtest.h>

#include "model/cluster/host_copies.h"
#include "model/framework/rule_set.h"
#include "model/transformer/parameters.h"
#include "sim/evaluate/predict_run.h"
#include "sim/screen/operators.h"

namespace cpfit {
namespace {

constexpr double kTokens = 2048, kHidden = 2048, kFfn = 8192, kLayers = 8;

/// A small Llama on one node of eight, 16 sequences of 2,048 tokens; heads and KV heads 16 of 128.
MeasuredRun small_llama(std::int32_t tp, std::int32_t dp, std::int64_t nodes = 1) {
  MeasuredRun run;
  Architecture& model = run.scenario.model;
  model.layers = static_cast<std::int64_t>(kLayers);
  model.hidden = static_cast<std::int64_t>(kHidden);
  model.ffn_hidden = static_cast<std::int64_t>(kFfn);
  model.heads = model.kv_heads = 16;
  model.head_dim = 128;
  model.vocab = 32768;
  run.scenario.cluster = build_cluster("dgx-h100", nodes).value();
  run.scenario.training.sequence = Tokens(static_cast<std::int64_t>(kTokens));
  run.scenario.training.global_batch = 16;
  run.scenario.training.vocab_divisor = 1;
  run.scenario.base.tp = tp;
  run.scenario.base.dp = dp;
  run.scenario.base.sequence_parallel = tp > 1;
  run.gpus = std::int64_t{tp} * dp;
  return run;
}

class FrameworkTime : public ::testing::Test {
 protected:
  RateSet rates = RateSet::defaults();
  Predictor predictor{rates};

  template <class Change>
  RunPrediction with(MeasuredRun run, const Change& change) {
    RuleSet rules = find_framework("megatron-core").value();
    rules.state_shardings.push_back(StateSharding::kZero3);
    change(rules);
    run.rules = std::make_shared<const RuleSet>(std::move(rules));
    auto prediction = predict(run, predictor);
    const auto* why = std::get_if<Unpredictable>(&prediction);
    EXPECT_EQ(why, nullptr) << (why != nullptr ? why->reason : "");
    return why == nullptr ? std::get<RunPrediction>(std::move(prediction)) : RunPrediction{};
  }
  RunPrediction plain(const MeasuredRun& run) {
    return with(run, [](RuleSet&) {});
  }
  /// With the groups of the run's recipe.
  const NetworkView& network_of(const MeasuredRun& run) {
    const GroupShapes shapes = group_shapes(run.scenario.base);
    NetworkView& network = predictor.network(run.scenario.cluster);
    for (const GroupShape& shape : {shapes.tp, shapes.pp, shapes.dp}) network.prepare(shape);
    return network;
  }
  [[nodiscard]] const GpuRates& gpu(const MeasuredRun& run) const { return rates.of(run.scenario.cluster.gpu); }
  [[nodiscard]] double passes(const MeasuredRun& run, double bytes) const {
    return memory_time(gpu(run), Bytes(bytes), 0).time.value();
  }
  [[nodiscard]] double product(const MeasuredRun& run, double m, double n, double k) const {
    const TrainingFactors factors = training_factors(gpu(run), MathKind::kBf16, AttentionLibrary::kCudnn);
    const GemmShape shape{static_cast<std::int64_t>(m), static_cast<std::int64_t>(n), static_cast<std::int64_t>(k)};
    return gemm_time(gpu(run), shape, MathKind::kBf16, factors.gemm_warm).time.value() * factors.gemm;
  }
};

double compute(const RunPrediction& prediction) { return prediction.candidate.time.compute.value(); }
double exposed_tp(const RunPrediction& prediction) { return prediction.candidate.time.exposed_tp.value(); }

// Two gathers and two scatters in each pass, each read and written whole: 4 h bytes a token. Asynchronous: gathers land in place,
// the forward's scatters add up their pieces and read them once.
TEST_F(FrameworkTime, CollectivesAlongTheSequenceCopyIt) {
  MeasuredRun run = small_llama(8, 1);
  const auto copies = [](RuleSet& rules) { rules.tp_copies_sequence = true; };
  const double micro_batches = 16, one = 4.0 * kHidden * kTokens;
  EXPECT_NEAR(compute(with(run, copies)) - compute(plain(run)), micro_batches * kLayers * passes(run, 8 * one), 1e-9);
  run.scenario.base.overlap_tp = true;
  EXPECT_NEAR(compute(with(run, copies)) - compute(plain(run)), micro_batches * kLayers * passes(run, (2 * 0.5 + 2) * one), 1e-9);
  run.scenario.base.tp = 1;
  run.scenario.base.overlap_tp = run.scenario.base.sequence_parallel = false;
  run.scenario.base.dp = 8;
  EXPECT_EQ(compute(with(run, copies)), compute(plain(run)));
}

TEST_F(FrameworkTime, InputsThatAreKeptAreNotGatheredAgain) {
  const MeasuredRun run = small_llama(8, 1);
  const auto serial = [](RuleSet& rules) { rules.tp_backward_async = false; };
  const auto kept = [](RuleSet& rules) { rules.tp_backward_async = rules.tp_regathers_inputs = false; };
  const GroupNetwork& net = network_of(run).at(group_shapes(run.scenario.base).tp);
  const Seconds gather = collective_time(gpu(run), CollectiveKind::kAllGather, net.collective_link, net.collective_rate,
                                         net.ring.latency, 8, Bytes(2.0 * kHidden * kTokens))
                             .time;
  EXPECT_NEAR(exposed_tp(with(run, serial)) - exposed_tp(with(run, kept)), 16 * kLayers * 2 * gather.value(), 1e-9);
}

// q, k and v by 2048 columns each, gate and up by 8192: every product in place of the joint one, and their input gradients added
// up by one kernel that reads all and writes the sum.
TEST_F(FrameworkTime, SeparateProjectionsAreProductsOfTheirOwn) {
  const MeasuredRun run = small_llama(1, 8);
  const auto apart = [](RuleSet& rules) { rules.separate_projections = true; };
  const auto all_three = [&](double n) {
    return product(run, kTokens, n, kHidden) + product(run, kTokens, kHidden, n) + product(run, n, kHidden, kTokens);
  };
  const double sums = passes(run, 2.0 * (4 + 3) * kTokens * kHidden) + 2 * memory_time(gpu(run), Bytes(0), 1).time.value();
  const double more = 3 * all_three(2048) - all_three(3 * 2048) + 2 * all_three(kFfn) - all_three(2 * kFfn) + sums;
  const double micro_batches = 2;
  EXPECT_NEAR(compute(with(run, apart)) - compute(plain(run)), micro_batches * kLayers * more, 1e-9);
}

TEST_F(FrameworkTime, RecomputeThatEndsEarlyLeavesOutTheLastProductAndScatter) {
  MeasuredRun run = small_llama(8, 1);
  run.scenario.base.recompute = {RecomputeKind::kFull, 0};
  const auto early = [](RuleSet& rules) { rules.recompute_ends_early = true; };
  const auto eager = [](RuleSet& rules) { rules.fused_elementwise = false; };
  const auto eager_early = [](RuleSet& rules) {
    rules.fused_elementwise = false;
    rules.recompute_ends_early = true;
  };
  const GroupNetwork& net = network_of(run).at(group_shapes(run.scenario.base).tp);
  const double scatter = collective_time(gpu(run), CollectiveKind::kReduceScatter, net.collective_link, net.collective_rate,
                                         net.ring.latency, 8, Bytes(2.0 * kHidden * kTokens))
                             .time.value();
  EXPECT_NEAR(exposed_tp(plain(run)) - exposed_tp(with(run, early)), 16 * kLayers * scatter, 1e-9);
  EXPECT_NEAR(compute(plain(run)) - compute(with(run, early)), 16 * kLayers * product(run, kTokens, kHidden, kFfn / 8), 1e-9);
  EXPECT_EQ(compute(with(run, eager)), compute(with(run, eager_early)));
}

// FSDP2's copies around its collectives, once per parameter and micro-batch.
TEST_F(FrameworkTime, FullyShardedParametersAreCopied) {
  MeasuredRun run = small_llama(1, 8);
  run.scenario.base.state_sharding = StateSharding::kZero3;
  const auto copies = [](RuleSet& rules) { rules.zero3_copy_bytes = 14; };
  const double parameters = static_cast<double>(count_parameters(run.scenario.model).total());
  const double launch = memory_time(gpu(run), Bytes(0), 1).time.value();
  EXPECT_NEAR(compute(with(run, copies)) - compute(plain(run)), 2 * (passes(run, 14 * parameters) + launch), 1e-9);
  run.scenario.base.state_sharding = StateSharding::kZero1;
  EXPECT_EQ(compute(with(run, copies)), compute(plain(run)));
}

// Each of 8 x 4 matrices, and once what lies beside the layers, is gathered in forward and in backward and reduced once, with 16
// host launches a time; recompute gathers a layer's once more. No compute hides any of it.
TEST_F(FrameworkTime, TensorsGatheredOneByOneWait) {
  MeasuredRun run = small_llama(1, 16, 2);
  run.scenario.base.state_sharding = StateSharding::kZero3;
  const auto waits = [](RuleSet& rules) { rules.zero3_waits = true; };
  const auto host = [](RuleSet& rules) {
    rules.zero3_waits = true;
    rules.shard_host_operations = 1;
  };
  const auto dp = [](const RunPrediction& prediction) { return prediction.candidate.time.exposed_dp.value(); };
  const double tensors = kLayers * 4, launch = launch_cost(gpu(run), false).value();
  EXPECT_NEAR(dp(with(run, host)) - dp(with(run, waits)), (tensors + 1) * 3 * 16 * launch, 1e-9);
  EXPECT_GT(dp(with(run, waits)), dp(plain(run)));
  const double once = dp(with(run, waits));
  run.scenario.base.recompute = {RecomputeKind::kFull, 0};
  EXPECT_NEAR(dp(with(run, host)) - dp(with(run, waits)), (tensors * 4 + 3) * 16 * launch, 1e-9);

  const double bytes = 2.0 * static_cast<double>(count_parameters(run.scenario.model).layer.total()) / 4;
  const GroupNetwork& net = network_of(run).at(group_shapes(run.scenario.base).dp);
  const Seconds gather = collective_time(gpu(run), CollectiveKind::kAllGather, net.collective_link, net.collective_rate,
                                         net.ring.latency, 16, Bytes(bytes), form_of_stride(net.shape.stride))
                             .time;
  EXPECT_NEAR(dp(with(run, waits)) - once, tensors * gather.value(), 1e-9);
}

// Over two nodes with a second of latency at each: as many seconds as buckets, times two. In fp32 a layer's matrices are, in the
// order of backward, 67, 134, 17 and 50 MB. Buckets of 50 MB: MLP out; MLP in; projection and QKV together.
TEST_F(FrameworkTime, BucketsHoldWholeTensors) {
  MeasuredRun run = small_llama(1, 16, 2);
  run.scenario.base.state_sharding = StateSharding::kNone;
  run.scenario.base.overlap_grad_reduce = run.scenario.base.overlap_param_gather = false;
  run.bus_rate = gb_per_s(180);
  MeasuredRun late = run;
  late.border_latency_all_reduce = Seconds(1.0);
  const auto whole = [](RuleSet& rules) {
    rules.grad_bucket = Bytes(50e6);
    rules.grad_bucket_per_rank = Bytes(0);
    rules.buckets_on_every_stage = rules.buckets_of_whole_tensors = true;
  };
  const double tables = 2;  // embedding and head, 268 MB each
  EXPECT_NEAR(with(late, whole).step_seconds.value - with(run, whole).step_seconds.value, 2 * (kLayers * 3 + tables), 1e-6);
  const auto cut = [](RuleSet& rules) {
    rules.grad_bucket = Bytes(50e6);
    rules.grad_bucket_per_rank = Bytes(0);
    rules.buckets_on_every_stage = true;
  };
  EXPECT_GT(with(late, cut).step_seconds.value, with(late, whole).step_seconds.value);
}

// ZeRO-1 whose host copies each of 16 ranks' pieces of each of 4 matrices and 2 norms of a layer by itself after the update.
TEST_F(FrameworkTime, PiecesOfAGatherAreCopiedByTheHost) {
  MeasuredRun run = small_llama(1, 16, 2);
  run.scenario.base.state_sharding = StateSharding::kZero1;
  const auto slices = [](RuleSet& rules) { rules.shard_host_operations = 0.5; };
  const double more = 0.5 * launch_cost(gpu(run), false).value() * 16 * kLayers * (4 + 2);
  EXPECT_NEAR(with(run, slices).step_seconds.value - plain(run).step_seconds.value, more, 1e-9);
  run.scenario.base.state_sharding = StateSharding::kNone;
  EXPECT_EQ(with(run, slices).step_seconds.value, plain(run).step_seconds.value);
}

// Two stages of eight data ranks on two nodes; 4 or 2 bytes for each of 32,768 rows of 2,048, over a pair of GPUs.
TEST_F(FrameworkTime, TiedEmbeddingsAreSummedOverTheEndsOfThePipeline) {
  MeasuredRun run = small_llama(1, 8, 2);
  run.scenario.base.pp = 2;
  run.gpus = 16;
  const auto exposed = [](const RunPrediction& prediction) { return prediction.candidate.time.exposed_dp.value(); };
  const double untied = exposed(plain(run));
  run.scenario.model.tied_embeddings = true;
  const double bytes = (run.scenario.training.grad_dtype == GradDtype::kFp32 ? 4.0 : 2.0) * 32768 * kHidden;
  const GroupNetwork& net = network_of(run).at(group_shapes(run.scenario.base).pp);
  const Seconds sum = collective_time(gpu(run), CollectiveKind::kAllReduce, net.collective_link, net.collective_rate,
                                      net.ring.latency, 2, Bytes(bytes), form_of_stride(8))
                          .time;
  EXPECT_NEAR(exposed(plain(run)) - untied, sum.value(), 1e-12);
  EXPECT_GT(sum.value(), bytes / 50e9);  // one 400 Gb/s NIC each
  run.scenario.base.pp = 1;              // one stage has both ends
  run.scenario.base.dp = 16;
  const double alone = exposed(plain(run));
  run.scenario.model.tied_embeddings = false;
  EXPECT_LE(alone, exposed(plain(run)));
}

// Whoever adds gradients up in a pass of its own clips and clears all of them, 16 bytes a parameter, sharded or not.
TEST_F(FrameworkTime, SumsOfGradientsAreClippedAndClearedWhole) {
  MeasuredRun run = small_llama(1, 8);
  const auto own_pass = [](RuleSet& rules) { rules.accumulation_traffic_per_parameter = 10; };
  const auto optimizer = [](const RunPrediction& prediction) { return prediction.candidate.time.optimizer.value(); };
  const double parameters = static_cast<double>(count_parameters(run.scenario.model).total());
  for (const StateSharding sharding : {StateSharding::kNone, StateSharding::kZero1}) {
    run.scenario.base.state_sharding = sharding;
    EXPECT_NEAR(optimizer(with(run, own_pass)) - optimizer(plain(run)), passes(run, 16 * parameters), 1e-9);
  }
}

// One sequence that 16 GPUs share without context parallelism: only tp 16 over two nodes can.
TEST_F(FrameworkTime, ASearchedLayoutMayReachBeyondTheNode) {
  MeasuredRun run = small_llama(1, 1, 2);
  run.gpus = 16;
  run.scenario.training.global_batch = 1;
  run.scenario.base.sequence_parallel = true;
  run.unknown = {"tp"};
  EXPECT_EQ(plain(run).candidate.recipe.tp, 16);
}

// Adam on the host: an eighth of the gradients, 2 bytes each, goes out over PCIe and as many weights come back; the norm reads
// them once more.
TEST_F(FrameworkTime, AnOptimizerOnTheHostWaitsForItsCopies) {
  MeasuredRun run = small_llama(1, 8);
  run.scenario.base.state_sharding = StateSharding::kZero3;
  run.scenario.training.grad_dtype = GradDtype::kBf16;
  const double parameters = kLayers * (4 * kHidden * kHidden + 3 * kHidden * kFfn + 2 * kHidden) + 2 * 32768 * kHidden + kHidden;
  const double bytes = 2.0 * parameters / 8;
  const HostCopies copies = host_copies(run.scenario.cluster, 8);
  const double copy = message_time(gpu(run), copies.slowest, copies.rate, copies.latency, Bytes(bytes)).time.value();
  EXPECT_GT(copy, bytes / copies.rate.value());  // a link attains less than it has
  const RunPrediction found = with(run, [](RuleSet& rules) { rules.optimizer_on_host = true; });
  const double norm = memory_time(gpu(run), Bytes(bytes), 1).time.value();
  EXPECT_NEAR(found.candidate.time.optimizer.value(), 2 * copy + norm, 1e-9);
}

// Gradients of two nodes over one NIC of each, over two, or over one for each of four members: the time goes with the inverse of
// their number, so from 4 to 1 it grows three times as much as from 4 to 2. Whole nodes and single members are as they were.
TEST_F(FrameworkTime, GroupsOfPartOfANodeMayUseFewerNics) {
  const auto step = [&](std::int32_t tp, std::int32_t rails) {
    MeasuredRun run = small_llama(tp, 16 / tp, 2);
    run.scenario.base.state_sharding = StateSharding::kZero1;
    run.scenario.base.overlap_grad_reduce = run.scenario.base.overlap_param_gather = false;
    run.rails_of_part = rails;
    return plain(run).step_seconds.value;
  };
  EXPECT_GT(step(2, 2), step(2, 0));
  EXPECT_NEAR((step(2, 1) - step(2, 0)) / (step(2, 2) - step(2, 0)), 3.0, 1e-6);
  EXPECT_EQ(step(2, 4), step(2, 0));
  EXPECT_EQ(step(1, 1), step(1, 0));
  EXPECT_EQ(step(8, 1), step(8, 0));
}

}  // namespace
}  // namespace cpfit
