// Published speeds of ring attention on 8 GPUs (zhuzilin/ring-flash-attention's README; cp_model.md A.9): Llama 3 8B's attention,
// 8k tokens per GPU. Shares of the ideal, which is the rate of one kernel over 8k tokens by 8 ("flash attn code is running 8*1^2
// while the ring attn code is running 1*8^2"): eight causal kernels of 8k tokens, what a striped rank runs. Predicted from kernel
// and link figures only.
#include "fixture.h"

#include "sim/engine/engine.h"
#include "sim/plan/workbench.h"
#include "sim/schedule/attention_schedule.h"

namespace cpfit {
namespace {

/// Shares of the ideal, forward and forward + backward.
struct Efficiency {
  double forward = 0, both = 0;
};

class AttentionEfficiency : public ::testing::Test {
 protected:
  RateSet rates = RateSet::defaults();

  [[nodiscard]] Efficiency of(const std::string& cluster, ShardLayout layout) const {
    Scenario scenario = read_scenario("name = \"a\"\nmodel = \"llama3-8b\"\n[cluster]\npreset = \"" + cluster +
                                          "\"\nnodes = 1\n[training]\nsequence_length = 65536\nglobal_batch = 1\n",
                                      "a.toml")
                            .value();
    scenario.base.framework = "ring-flash-attention";
    scenario.base.cp = 8;
    scenario.base.shard_layout = layout;
    Workbench bench = Workbench::build(scenario, rates).value();
    bench.prepare(scenario.base);
    // The benchmark runs attention alone: kernels at their own rates, without what a whole training step makes of them.
    const ScreenContext trained = bench.context(scenario.training);
    GpuRates kernels = trained.rates;
    kernels.training.fill({});
    const auto context_of = [&](const Training& training) {
      return ScreenContext{trained.model, trained.cluster, training,       trained.requirements,
                           trained.rules, kernels,         trained.network};
    };
    const ScreenContext context = context_of(scenario.training);
    Recipe alone = scenario.base;
    alone.cp = 1;
    Training one_shard = scenario.training;
    one_shard.sequence = Tokens(65536 / 8);
    const schedule::OperatorTimes shard = schedule::operator_times(context_of(one_shard), alone);
    const double ideal_forward = static_cast<double>(shard.full_ring[0].forward[0]) * 8.0;
    const double ideal_both = ideal_forward + static_cast<double>(shard.full_ring[0].backward[0]) * 8.0;
    const Unpacking unpacking = unpacking_of(kernels, context.model);
    const double forward = makespan(context, scenario.base, false) + unpacking.forward;
    const double both = makespan(context, scenario.base, true) + unpacking.forward + unpacking.backward;
    return {ideal_forward / forward, ideal_both / both};
  }

 private:
  /// benchmark_kvpacked_func.py hands K and V over as slices of one tensor. Rings copy both, 2 bytes an element read and written;
  /// autograd embeds each one's gradient in zeros for both (filled, copied into: 2 x 2 + 2 + 2) and adds the two (3 x 2 x 2).
  struct Unpacking {
    double forward = 0, backward = 0;  // ps
  };
  [[nodiscard]] static Unpacking unpacking_of(const GpuRates& rates, const Architecture& model) {
    const double elements = 8192.0 * static_cast<double>(model.kv_heads * model.head_dim);  // of K
    const auto picoseconds = [&](double bytes, int launched) {
      return memory_time(rates, Bytes(bytes * elements), launched).time.value() * 1e12;
    };
    return {picoseconds(2 * 4, 2), picoseconds(2 * (2 * 2 + 4) + 3 * 2 * 2, 5)};
  }

  [[nodiscard]] static double makespan(const ScreenContext& context, const Recipe& recipe, bool backward) {
    const schedule::SimulatedRanks ranks(recipe, false);
    engine::ProgramBuilder program;
    schedule::StepNetwork network(context, recipe, ranks, program);
    schedule::Writer writer(ranks, network, program, std::vector<double>(8, 1.0));
    const schedule::OperatorTimes times = schedule::operator_times(context, recipe);
    schedule::AttentionSchedule attention(context, recipe, times, writer);
    const std::vector<std::int32_t> group = {0, 1, 2, 3, 4, 5, 6, 7};
    schedule::Place at;
    attention.forward(group, at, false);
    at.pass = engine::StepPass::kBackward;
    if (backward) attention.backward(group, at, false);
    return static_cast<double>(engine::run(program.take()).value().makespan);
  }
};

// Forward and backward together all are within 4.1 points. Forward contiguous and zigzag shards of A100 come out 5 and 6 points
// too slow: their merges are counted operator by operator, which striped shards confirm (within 3 points) and which is more
// than the other two leave room for. Backward of striped and of zigzag shards is too fast by the same time a step, 0.45 ms on
// A100 and 0.3 ms on H800: as the memories' rates, 0.7 to 0.8 GB that neither the masks nor the halves change.
constexpr double kForward = 0.06, kBoth = 0.05;

void expect_near(const Efficiency& predicted, double forward, double both) {
  EXPECT_NEAR(predicted.forward, forward, kForward);
  EXPECT_NEAR(predicted.both, both, kBoth);
}

TEST_F(AttentionEfficiency, OfEightH800) {
  const Efficiency contiguous = of("h800-8x100g", ShardLayout::kContiguous), striped = of("h800-8x100g", ShardLayout::kStriped),
                   zigzag = of("h800-8x100g", ShardLayout::kZigzag);
  expect_near(contiguous, 0.521, 0.539);
  expect_near(striped, 0.744, 0.829);
  expect_near(zigzag, 0.852, 0.902);
  EXPECT_LT(contiguous.both, striped.both);
  EXPECT_LT(striped.both, zigzag.both);
}

TEST_F(AttentionEfficiency, OfEightA100) {
  const Efficiency contiguous = of("dgx-a100", ShardLayout::kContiguous), striped = of("dgx-a100", ShardLayout::kStriped),
                   zigzag = of("dgx-a100", ShardLayout::kZigzag);
  expect_near(contiguous, 0.514, 0.525);
  expect_near(striped, 0.696, 0.826);
  expect_near(zigzag, 0.817, 0.898);
  EXPECT_LT(contiguous.both, striped.both);
  EXPECT_LT(striped.both, zigzag.both);
}

}  // namespace
}  // namespace cpfit
