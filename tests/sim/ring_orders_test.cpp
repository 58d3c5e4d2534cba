// Rings that are no rings: DistFlashAttention's balanced pairs and BurstAttention's rotated queries, on screen and timeline.
#include "fixture.h"

#include "sim/plan/step_timeline.h"
#include "sim/timeline/loads.h"

namespace cpfit {
namespace {

constexpr double kMicroBatches = 4, kLayers = 32, kRanks = 4;  // cp 4, dp 2, eight sequences
// Llama 3 8B, 32,768 tokens over cp 4: 8,192 tokens of 32 query heads and 8 KV heads of 128, in 2 bytes.
constexpr double kQ = 8192.0 * 32 * 128 * 2, kKv = 2 * 8192.0 * 8 * 128 * 2, kLse = 4 * 8192.0 * 32;

class RingOrder : public ::testing::Test {
 protected:
  RateSet rates = RateSet::defaults();
  StepTimeline timeline(const std::string& text) {
    Scenario scenario = test::llama_on_dgx(1, 32768, 8);
    scenario.base = parse_recipe(text, scenario.base).value();
    Workbench bench = Workbench::build(scenario, rates).value();
    Outcome<StepTimeline> result = step_timeline(bench, scenario.training, scenario.base, {});
    EXPECT_TRUE(result.ok()) << (result.ok() ? "" : to_text(result.problems()[0]));
    return result.value();
  }
  static double sent_per_layer(const StepTimeline& timeline) {
    double bytes = 0;
    for (const timeline::EdgeLoad& edge : timeline::edge_loads(timeline.history())) {
      if (edge.axis == engine::TrafficAxis::kCp) bytes += edge.bytes;
    }
    return bytes / (kMicroBatches * kLayers);
  }
};

TEST_F(RingOrder, PairsFetchFromTheOwnerAndHelpersReturnOutputs) {
  // Four ranks, two steps behind the diagonal. First: 1, 2 and 3 fetch K and V from the rank before, 0 gets the queries of 3.
  // Last: 2 and 3 fetch from 0 and 1; nobody helps. Forward, 0 returns one output. Backward its queries come with O, dO and LSE,
  // it returns one dQ, the others return five dK, dV in 16 bits.
  const double forward = 5 * kKv + kQ + (kQ + kLse), backward = 5 * kKv + (3 * kQ + kLse) + kQ + 5 * kKv;
  const StepTimeline step = timeline("tp=1,cp=4,pp=1,dp=2,shard_layout=contiguous,framework=distflashattn,state_sharding=zero3");
  EXPECT_DOUBLE_EQ(sent_per_layer(step), forward + backward);
}

TEST_F(RingOrder, PairsAgreeOnScreenAndTimeline) {
  for (const char* recipe : {"tp=1,cp=4,pp=1,dp=2", "tp=1,cp=8,pp=1,dp=1"}) {
    const StepTimeline step =
        timeline(std::string(recipe) + ",shard_layout=contiguous,framework=distflashattn,state_sharding=zero3");
    EXPECT_NEAR(step.ratio(), 1.0, kAgreement) << recipe;
  }
}

TEST_F(RingOrder, BurstRotatesQueriesBackward) {
  // Forward as any ring: three times K and V. Backward three times Q, dO, LSE and delta, and four times dQ.
  const StepTimeline step = timeline("tp=1,cp=4,pp=1,dp=2,framework=burstengine,state_sharding=zero3");
  EXPECT_DOUBLE_EQ(sent_per_layer(step), kRanks * (3 * kKv + 3 * (2 * kQ + 2 * kLse) + 4 * kQ));
}

// What PyTorch gathers and what it sends home waits for itself in a compiled model. A layer and micro-batch exposes three gathers
// (forward, its second run, backward) and four sends of dKV, whatever the kernels take; on the timeline the same.
TEST_F(RingOrder, CompiledExchangesHideBehindNothing) {
  Scenario scenario = test::llama_on_dgx(1, 65536, 2, "framework = \"torchtitan\"\n");
  const Recipe recipe = parse_recipe("tp=1,cp=4,pp=1,dp=2,recompute=full", scenario.base).value();
  scenario.base = recipe;
  Workbench bench = Workbench::build(scenario, rates).value();
  ASSERT_TRUE(bench.evaluate(scenario.training, recipe).ok());
  const ScreenContext eager = bench.context(scenario.training);
  RuleSet compiled = bench.rules();
  compiled.fused_elementwise = true;
  const ScreenContext context{eager.model, eager.cluster, eager.training, eager.requirements,
                              compiled,    eager.rates,   eager.network};
  const ResolvedLayout layout = resolve_layout(context.model, recipe).value();

  const CpTraffic traffic = cp_traffic(context.model, context.training, recipe, compiled);
  const GroupNetwork& ring = context.network.at(group_shapes(recipe).cp_ring);
  const Seconds gather = collective_time(context.rates, CollectiveKind::kAllGather, ring.collective_link, ring.collective_rate,
                                         ring.ring.latency, 4, traffic.forward.gather)
                             .time;
  const Seconds home =
      message_time(context.rates, ring.ring.slowest, ring.ring.rate, ring.ring.latency, traffic.backward.homecoming).time;
  const Candidate step = screen(context, recipe, layout);
  EXPECT_NEAR(step.time.exposed_cp.value(), 32 * (3.0 * gather + 4.0 * home).value(), 1e-9);

  const schedule::StepProgram program = schedule::step_program(context, recipe, layout, {}).value();
  const engine::Run run = engine::run(program.program).value();
  const timeline::StepAnswer answer = timeline::step_answer(timeline::History(program.program, run));
  EXPECT_NEAR(answer.time.step() / step.time.step(), 1.0, kAgreement);
}

}  // namespace
}  // namespace cpfit
