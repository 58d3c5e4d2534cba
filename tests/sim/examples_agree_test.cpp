// Screen and timeline over the example set: what each example ships is held to 2 % of the step, whatever it is made of.
#include "fixture.h"

#include "sim/plan/step_timeline.h"

namespace cpfit {
namespace {

TEST(ExamplesAgree, ScreenAndTimelineWithinTheBound) {
  const struct {
    const char* file;
    const char* recipe;  // that `cpfit plan` ships
  } examples[] = {
      {"gemma3-12b-128k-window", "tp=4,cp=2,cp_comm=a2a,pp=1,dp=2,recompute=full"},
      {"llama2-7b-256k", "tp=8,cp=2,pp=1,dp=16,precision=fp8_delayed,framework=nemo-24"},
      {"llama3-70b-32k-8nodes", "tp=8,cp=4,pp=2,dp=1,vpp=2"},
      {"llama3-8b-128k-1node", "tp=4,cp=2,pp=1,dp=1,recompute=mlp"},
      {"llama3-8b-128k-2nodes", "tp=4,cp=4,pp=1,dp=1"},
      {"llama3-8b-32k-8xpcie", "tp=2,cp=2,pp=2,dp=1,recompute=mlp"},
      {"llama3-8b-64k-documents", "tp=2,cp=4,cp_comm=a2a,pp=1,dp=1,recompute=mlp"},
      {"llama3.1-405b-128k", ""},  // the published recipe, as the file has it
      {"qwen2.5-3b-64k-2kv", "tp=2,cp=4,pp=1,dp=1"},
  };
  const RateSet rates = RateSet::defaults();
  for (const auto& example : examples) {
    Scenario scenario = load_scenario(std::string(CPFIT_SOURCE_DIR) + "/examples/" + example.file + ".toml").value();
    const Recipe recipe = parse_recipe(example.recipe, scenario.base).value();
    scenario.base = recipe;
    Workbench bench = Workbench::build(scenario, rates).value();
    const Outcome<StepTimeline> step = step_timeline(bench, scenario.training, recipe, {});
    ASSERT_TRUE(step.ok()) << example.file << ": " << to_text(step.problems()[0]);
    EXPECT_NEAR(step->ratio(), 1.0, kAgreement) << example.file << ": " << disagreement(*step, kAgreement);
  }
}

}  // namespace
}  // namespace cpfit
