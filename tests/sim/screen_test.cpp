// The screen's own promises: breakdowns add up, cp = 1 has no ring, structural identities of the strategies.
#include "fixture.h"

#include "model/traffic/collective_traffic.h"
#include "model/transformer/flops.h"
#include "sim/plan/workbench.h"
#include "sim/screen/layer_cost.h"
#include "sim/screen/operators.h"

namespace cpfit {
namespace {

class ScreenTest : public ::testing::Test {
 protected:
  Scenario scenario = test::llama_on_dgx(1, 131072, 8);
  RateSet rates = RateSet::defaults();
  Workbench bench = Workbench::build(scenario, rates).value();

  Candidate evaluate(const std::string& recipe, const Training* training = nullptr) {
    Outcome<Recipe> parsed = parse_recipe(recipe, scenario.base);
    EXPECT_TRUE(parsed.ok());
    Recipe value = parsed.value();
    if (value.tp == 1) value.sequence_parallel = false;
    Outcome<Candidate> candidate = bench.evaluate(training != nullptr ? *training : scenario.training, value);
    for (const Problem& problem : candidate.problems()) ADD_FAILURE() << to_text(problem);
    return candidate.ok() ? *candidate : Candidate{};
  }
};

TEST_F(ScreenTest, TheBreakdownAddsUpExactly) {
  const Candidate c = evaluate("tp=2,cp=4,pp=1,dp=1");
  const TimeBreakdown& t = c.time;
  const Seconds sum =
      t.compute + t.exposed_cp + t.exposed_tp + t.exposed_pp + t.exposed_dp + t.bubble + t.launch + t.optimizer + t.other;
  EXPECT_EQ(sum, t.step());
  EXPECT_GT(t.compute.value(), 0.0);
  EXPECT_GT(t.exposed_tp.value(), 0.0);
  EXPECT_EQ(t.bubble.value(), 0.0) << "no pipeline, no bubble";
}

TEST_F(ScreenTest, ComponentsOfMemorySumToTheDevice) {
  const Candidate c = evaluate("tp=2,cp=4,pp=1,dp=1");
  Bytes sum;
  for (const Bytes component : c.memory.components) sum += component;
  EXPECT_NEAR(sum.value(), c.memory.device.value(), 1.0);
  EXPECT_GE(c.memory.device, c.memory.reserved);
  EXPECT_GE(c.memory.reserved, c.memory.peak);
  EXPECT_GE(c.memory.peak, max(c.memory.forward_peak, c.memory.backward_peak));
}

TEST_F(ScreenTest, WithoutContextParallelismNothingOfItRemains) {
  const Candidate c = evaluate("tp=8,cp=1,pp=1,dp=1");
  EXPECT_EQ(c.time.exposed_cp.value(), 0.0);
  EXPECT_EQ(c.cp.bytes_sent_per_layer.value(), 0.0);
  EXPECT_EQ(c.memory.components[static_cast<std::size_t>(Component::kCpBuffers)].value(), 0.0);
}

TEST_F(ScreenTest, TheStepIsNeverFasterThanPeakArithmetic) {
  for (const char* recipe :
       {"tp=8,cp=1,pp=1,dp=1", "tp=1,cp=8,pp=1,dp=1", "tp=2,cp=2,pp=2,dp=1", "tp=4,cp=2,pp=1,dp=1,cp_comm=a2a"}) {
    const Candidate c = evaluate(recipe);
    EXPECT_GT(c.mfu, 0.0) << recipe;
    EXPECT_LT(c.hfu, 1.0) << recipe;
  }
}

// Sums of gradients in fp32 are read and written in 8 bytes, in bf16 in 4: over all weights of layers and head, once per
// micro-batch, 0.75 of it at the rate of streaming kernels (0.85 of HBM).
TEST_F(ScreenTest, AddingToTheGradientsCostsTrafficByTheirType) {
  Training half = scenario.training;
  half.grad_dtype = GradDtype::kBf16;
  const char* recipe = "tp=1,cp=8,pp=1,dp=1";  // 8 micro-batches
  const double layer = 4096.0 * (6144 + 4096 + 3 * 14336), head = 128256.0 * 4096;
  const double expected = 8 * 4 * (32 * layer + head) * 0.75 / (0.85 * scenario.cluster.gpu.hbm.value());
  EXPECT_NEAR((evaluate(recipe).time.compute - evaluate(recipe, &half).time.compute).value(), expected, 1e-6 * expected);
}

TEST_F(ScreenTest, RecomputeCostsTimeAndFreesMemory) {
  const Candidate none = evaluate("tp=2,cp=4,pp=1,dp=1,recompute=none");
  const Candidate full = evaluate("tp=2,cp=4,pp=1,dp=1,recompute=full");
  // Full recompute repeats the layers' forward: a third more layer time, less what head, optimizer and communication dilute.
  EXPECT_GT(full.time.step() / none.time.step(), 1.15);
  EXPECT_LT(full.time.step() / none.time.step(), 1.40);
  EXPECT_LT(full.memory.peak, none.memory.peak);
  EXPECT_GT(full.hfu, full.mfu);
  EXPECT_DOUBLE_EQ(none.hfu, none.mfu);
}

TEST_F(ScreenTest, TheMlpAloneIsAThirdOfItsTrainingTime) {
  // Without tensor parallelism nothing but kernels runs again: of MLP and norm a forward, whose three passes are in the step.
  const Candidate none = evaluate("tp=1,cp=8,pp=1,dp=1"), mlp = evaluate("tp=1,cp=8,pp=1,dp=1,recompute=mlp"),
                  full = evaluate("tp=1,cp=8,pp=1,dp=1,recompute=full");
  const double again = (mlp.time.compute - none.time.compute).value(), whole = (full.time.compute - none.time.compute).value();
  // Of a Llama layer's products the MLP has 3*H*F of H*(H + 2*1024) + H*H + 3*H*F: 81 %; attention over 128k tokens comes on top.
  EXPECT_LT(again, 0.81 * whole);
  const TokenFlops flops = forward_flops_per_token(scenario.model, 65536.0);
  const double share = flops.mlp / (flops.mlp + flops.projections + flops.attention);
  EXPECT_NEAR(again / whole, share, 0.1);
  EXPECT_EQ(mlp.time.exposed_cp, none.time.exposed_cp) << "attention and its ring do not run again";
}

TEST_F(ScreenTest, EachPolicyRepeatsWhatItSaysInTimeAndInHardwareFlops) {
  // HFU / MFU = 1 + repeated / (3 * (layers + head)) in FLOPs. Selective recompute under Megatron repeats core attention only;
  // torchtitan keeps attention and repeats half of the products.
  const TokenFlops flops = forward_flops_per_token(scenario.model, 65536.0);  // causal half of 131,072
  const double layers = 32.0, attention = flops.attention.value(), rest = (flops.projections + flops.mlp).value();
  const double model = 3.0 * (layers * (attention + rest) + flops.head.value());
  const auto ratio = [&](const char* framework, const char* recompute) {
    scenario.base.framework = framework;
    bench = Workbench::build(scenario, rates).value();
    const Candidate c = evaluate(std::string("tp=2,cp=2,pp=1,dp=2,recompute=") + recompute + ",state_sharding=" +
                                 (std::string(framework) == "megatron-core" ? "zero1" : "zero3") + ",framework=" + framework);
    return c.hfu / c.mfu;
  };
  EXPECT_NEAR(ratio("megatron-core", "selective"), 1.0 + layers * attention / model, 1e-9);
  EXPECT_NEAR(ratio("megatron-core", "full"), 1.0 + layers * (attention + rest) / model, 1e-9);
  EXPECT_NEAR(ratio("megatron-core", "mlp"), 1.0 + layers * flops.mlp.value() / model, 1e-9);
  EXPECT_NEAR(ratio("torchtitan", "selective"), 1.0 + 0.5 * layers * rest / model, 1e-9);
}

TEST_F(ScreenTest, TheSameTokensPerRankCostTheSameActivations) {
  // Twice the sequence on twice the CP ranks: tokens per rank unchanged, so the layers' saved activations are too.
  Training longer = scenario.training;
  longer.sequence = Tokens(2 * scenario.training.sequence.count());
  const Candidate a = evaluate("tp=2,cp=2,pp=1,dp=2,cp_comm=a2a");
  const Candidate b = evaluate("tp=2,cp=4,pp=1,dp=1,cp_comm=a2a", &longer);
  const auto activations = [](const Candidate& c) {
    return c.memory.components[static_cast<std::size_t>(Component::kActivations)].value();
  };
  EXPECT_NEAR(activations(a), activations(b), 0.01 * activations(a));
}

TEST_F(ScreenTest, MoreTokensPerRankHideMoreOfTheRing) {
  // Break-even: s/cp against 2 (h_kv/h_q) F/B. Exposed share of the step must not grow with the sequence at fixed cp.
  double last = 1.0;
  for (const std::int64_t sequence : {8192, 32768, 131072, 524288}) {
    Training training = scenario.training;
    training.sequence = Tokens(sequence);
    const Candidate c = evaluate("tp=1,cp=8,pp=1,dp=1", &training);
    const double share = c.time.exposed_cp / c.time.step();
    EXPECT_LE(share, last) << sequence;
    last = share;
  }
}

// Overlapped gathers and scatters of tp 8: attention's products are a third of the MLP's and shorter than what passes under them,
// though the MLP's are long enough for both gathers.
TEST_F(ScreenTest, AProductHidesItsOwnCollectiveOnly) {
  const Recipe recipe = parse_recipe("tp=8,cp=1,pp=1,dp=1,overlap_tp=true", scenario.base).value();
  ASSERT_TRUE(bench.evaluate(scenario.training, recipe).ok());
  const ScreenContext context = bench.context(scenario.training);
  const operators::RankShape shape = operators::rank_shape(context, recipe);
  const auto linears = operators::layer_linears(context, recipe, shape);
  const auto product = [&](std::size_t i) { return operators::linear_forward(context, shape, linears[i]).time.value(); };
  const GroupNetwork& net = context.network.at(group_shapes(recipe).tp);
  const Bytes bytes = tp_traffic(context.model, context.training, recipe).activation;
  const auto time = [&](CollectiveKind kind) {
    return collective_time(context.rates, kind, net.collective_link, net.collective_rate, net.ring.latency, 8, bytes)
        .time.value();
  };
  const double gather = time(CollectiveKind::kAllGather), scatter = time(CollectiveKind::kReduceScatter);
  ASSERT_GT(gather, 7.0 / 8 * product(0));
  ASSERT_GT(scatter, product(1));
  ASSERT_LT(2 * gather, 7.0 / 8 * (product(0) + product(2)));
  ASSERT_LT(scatter, product(3));
  const double waited = (gather - 7.0 / 8 * product(0)) + (scatter / 4 + 3.0 / 4 * (scatter - product(1))) + scatter / 4;
  const double slowed = (2 * (gather + scatter) - waited) * (overlap_slowdown(context.rates, net.collective_link) - 1.0);
  EXPECT_NEAR(layer_cost(context, recipe).global.forward.tp.value(), waited + slowed, 1e-12);
}

// One layer of a GPT of 22B (hidden 6,144, four sequences of 2,048 tokens) on eight A100, forward and backward, as arXiv
// 2205.05198 measured it (Table 4): nothing of a pipeline, of gradients or of the host is in it.
TEST(ScreenOfOneLayer, TakesWhatItsAuthorsMeasured) {
  Outcome<Scenario> read = read_scenario(
      "name = \"22B\"\n[model]\nlayers = 4\nhidden = 6144\nffn_hidden = 24576\nheads = 64\nkv_heads = 64\nhead_dim = 96\n"
      "vocab = 51200\nactivation = \"gelu\"\nnorm = \"layer\"\nposition = \"learned\"\nmax_positions = 2048\n"
      "attention_dropout = 0.1\nhidden_dropout = 0.1\n[cluster]\npreset = \"dgx-a100\"\nnodes = 1\n[training]\n"
      "sequence_length = 2048\nglobal_batch = 4\nprecision = \"fp16\"\nframework = \"megatron-2022\"\n",
      "22b.toml");
  for (const Problem& problem : read.problems()) ADD_FAILURE() << to_text(problem);
  const Scenario scenario = std::move(read).value();
  const RateSet rates = RateSet::defaults();
  Workbench bench = Workbench::build(scenario, rates).value();
  const auto milliseconds = [&](bool sequence_parallel, double again, double attention_again) {
    const std::string text = std::string("tp=8,cp=1,pp=1,dp=1,micro_batch=4,overlap_tp=false,state_sharding=none,") +
                             "sequence_parallel=" + (sequence_parallel ? "true" : "false");
    const Recipe recipe = parse_recipe(text, scenario.base).value();
    EXPECT_TRUE(bench.evaluate(scenario.training, recipe).ok());
    const LayerPasses layer = layer_cost(bench.context(scenario.training), recipe).global;
    const Cost whole = layer.forward * (1.0 + again);
    return 1e3 * (whole.total() + layer.backward.total() + (layer.attention_forward * attention_again).total()).value();
  };
  EXPECT_NEAR(milliseconds(false, 0, 0) / 19.6, 1.0, 0.05) << "no recompute";
  EXPECT_NEAR(milliseconds(true, 0, 0) / 19.0, 1.0, 0.05) << "sequence parallelism";
  EXPECT_NEAR(milliseconds(false, 1, 0) / 27.2, 1.0, 0.05) << "full recompute";
  EXPECT_NEAR(milliseconds(false, 0, 1) / 20.9, 1.0, 0.05) << "selective recompute";
  EXPECT_NEAR(milliseconds(true, 0, 1) / 20.3, 1.0, 0.05) << "both";
}

// Layers of 1,024 tokens on eight GPUs take less than their 36 calls of forward (14 kernels and 4 collectives, two calls each)
// and 32 of backward. The host sets the pace: calls of all layers, of embedding (3) and head (8, 3), and the wait for the loss.
TEST_F(ScreenTest, AnEagerHostSetsThePaceOfSmallLayers) {
  Training small = scenario.training;
  small.sequence = Tokens(1024);
  const std::string recipe = "tp=8,cp=1,pp=1,dp=1";
  const auto host = [&](const Candidate& c) { return (c.time.compute + c.time.exposed_tp + c.time.launch).value() / 8; };
  const Recipe parsed = parse_recipe(recipe, scenario.base).value();
  const auto expected = [&](Workbench& on, double call) {
    on.prepare(parsed);
    const double loss = end_costs(on.context(small), parsed).head_forward.total().value();
    return call * (32 * (36 + 32) + 3 + 8 + 3) + loss;
  };
  constexpr double kCall = 65e-6;
  EXPECT_NEAR(host(evaluate(recipe, &small)), expected(bench, kCall), 1e-9);

  Scenario ampere = scenario;  // the same code on a CPU 1.6 times slower
  ampere.cluster = build_cluster("dgx-a100", 1).value();
  Workbench slower = Workbench::build(ampere, rates).value();
  const Outcome<Candidate> there = slower.evaluate(small, parsed);
  ASSERT_TRUE(there.ok());
  EXPECT_NEAR(host(*there), expected(slower, 1.6 * kCall), 1e-9);

  small.cuda_graphs = true;  // 68 calls of a layer cost less than its kernels
  EXPECT_EQ(evaluate(recipe, &small).time.launch.value(), 0.0);
}

// A forward that is late by the host stays late where the host waits between passes, and is made good by a backward that the GPU
// is busy with where messages of the pipeline overlap.
TEST_F(ScreenTest, AHostThatNeverWaitsMakesUpForLatePasses) {
  Training small = scenario.training;
  small.sequence = Tokens(4096);
  small.global_batch = 32;
  const auto late = [&](const std::string& more) {
    return evaluate("tp=2,cp=1,pp=4,dp=1,vpp=2" + more, &small).time.launch.value();
  };
  EXPECT_GT(late(",overlap_p2p=false"), 0.0);
  EXPECT_LT(late(",overlap_p2p=true"), late(",overlap_p2p=false"));
}

TEST_F(ScreenTest, IntervalsContainTheEstimate) {
  const Candidate c = evaluate("tp=2,cp=4,pp=1,dp=1");
  EXPECT_LT(c.step_low, c.time.step());
  EXPECT_GT(c.step_high, c.time.step());
}

TEST_F(ScreenTest, AnIllegalRecipeIsExplainedNotScreened) {
  const Outcome<Candidate> candidate =
      bench.evaluate(scenario.training, parse_recipe("tp=3,cp=4,pp=1,dp=1", scenario.base).value());
  ASSERT_FALSE(candidate.ok());
  EXPECT_FALSE(candidate.problems().front().message.empty());
  EXPECT_FALSE(candidate.problems().front().repair.empty());
}

}  // namespace
}  // namespace cpfit
