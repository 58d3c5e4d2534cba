// ZB-H1: screen against timeline, what it saves beside 1F1B, and what the memory over time says.
#include "fixture.h"

#include "sim/plan/step_memory.h"
#include "sim/plan/step_timeline.h"
#include "sim/screen/layer_cost.h"

namespace cpfit {
namespace {

class ZeroBubble : public ::testing::Test {
 protected:
  RateSet rates = RateSet::defaults();
  Scenario scenario = test::llama_on_dgx(1, 32768, 16, "framework = \"primus\"\n");

  StepTimeline timeline(const std::string& text) {
    Scenario own = scenario;
    own.base = parse_recipe(text + ",overlap_grad_reduce=false,overlap_param_gather=false", scenario.base).value();
    Workbench bench = Workbench::build(own, rates).value();
    Outcome<StepTimeline> step = step_timeline(bench, own.training, own.base, {});
    EXPECT_TRUE(step.ok()) << text << ": " << (step.ok() ? "" : to_text(step.problems()[0]));
    return step.value();
  }
};

TEST_F(ZeroBubble, ScreenAndTimelineAgree) {
  for (const char* recipe : {"tp=1,cp=2,pp=4,dp=1,schedule=zb_h1", "tp=2,cp=1,pp=4,dp=1,schedule=zb_h1",
                             "tp=1,cp=4,cp_comm=a2a,pp=2,dp=1,schedule=zb_h1,recompute=full",
                             "tp=2,cp=1,pp=2,dp=2,schedule=zb_h1,sequence_parallel=false"}) {
    const StepTimeline step = timeline(recipe);
    EXPECT_NEAR(step.ratio(), 1.0, kAgreement) << recipe << ": " << disagreement(step, kAgreement);
  }
}

// The last stage, the longest with the head, sets the pace. 1F1B: it idles while three stages fill and drain, 3 (F + B + W).
// ZB-H1: it ends its last B four W earlier than its work would, those of the last four micro-batches; behind that B three others
// follow on the way down and the first stage's W: 3 F + 3 B + W - 4 (W + head's). The difference is 6 W + 4 head's.
TEST_F(ZeroBubble, SavesBubbleAndCostsMemoryOfTheLaterStages) {
  const StepTimeline plain = timeline("tp=1,cp=2,pp=4,dp=1"), zero = timeline("tp=1,cp=2,pp=4,dp=1,schedule=zb_h1");
  const double compute = plain.screened.time.compute.value();
  EXPECT_EQ(zero.screened.time.compute, plain.screened.time.compute) << "the same kernels in another order";
  EXPECT_NEAR(zero.candidate.time.compute.value(), plain.candidate.time.compute.value(), 1e-3 * compute);
  Workbench bench = Workbench::build(scenario, rates).value();
  bench.prepare(plain.screened.recipe);
  const LayerCost layer = layer_cost(bench.context(scenario.training), plain.screened.recipe);
  const double weights = 8 * layer.weights.compute.value(), head = layer.head_weights.compute.value();
  for (const auto& [less, more] : {std::pair(zero.screened, plain.screened), std::pair(zero.candidate, plain.candidate)}) {
    EXPECT_NEAR((more.time.bubble - less.time.bubble).value(), 6 * weights + 4 * head, 0.05 * weights);
    EXPECT_LT(less.time.step().value(), more.time.step().value());
  }
  // All stages hold four micro-batches now, the last one logits of three more.
  EXPECT_GT(zero.screened.memory.peak.value(), plain.screened.memory.peak.value());
  EXPECT_EQ(zero.screened.memory.stage, 3);
}

TEST_F(ZeroBubble, MemoryOverTimePeaksWhereTheLedgerSays) {
  const StepTimeline zero = timeline("tp=1,cp=2,pp=4,dp=1,schedule=zb_h1");
  Workbench bench = Workbench::build(scenario, rates).value();
  const Recipe& recipe = zero.candidate.recipe;
  const ResolvedLayout layout = resolve_layout(scenario.model, recipe).value();
  const StepMemory memory = step_memory(bench, scenario.training, zero);
  const ScreenContext context = bench.context(scenario.training);
  for (std::int32_t stage = 0; stage < 4; ++stage) {
    const MemoryCase at{scenario.model, scenario.training, recipe, context.rules, scenario.cluster.gpu, layout};
    const double ledger = stage_memory(at, stage).peak.value();
    double peak = 0;
    for (std::size_t rank = 0; rank < memory.tracks.size(); ++rank) {
      if (zero.step->ranks.coordinate(static_cast<std::int32_t>(rank)).pp == stage)
        peak = std::max(peak, static_cast<double>(memory.tracks[rank].peak));
    }
    EXPECT_NEAR(peak, ledger, 0.03 * ledger) << stage;
  }
}

TEST_F(ZeroBubble, OnlyItsFrameworkRunsIt) {
  for (const char* framework : {"megatron-core", "torchtitan"}) {
    Scenario own = test::llama_on_dgx(1, 32768, 16, std::string("framework = \"") + framework + "\"\n");
    own.base =
        parse_recipe("tp=1,cp=2,pp=4,dp=1,schedule=zb_h1,overlap_grad_reduce=false,overlap_param_gather=false", own.base).value();
    Workbench bench = Workbench::build(own, rates).value();
    const Outcome<Candidate> candidate = bench.evaluate(own.training, own.base);
    ASSERT_FALSE(candidate.ok()) << framework;
    EXPECT_EQ(candidate.problems()[0].code, "recipe.schedule_offered") << framework;
  }
}

}  // namespace
}  // namespace cpfit
