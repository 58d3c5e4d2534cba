// Memory over time against the ledger's peaks.
#include "fixture.h"

#include <algorithm>

#include "sim/plan/step_memory.h"

namespace cpfit {
namespace {

class StepMemoryTest : public ::testing::Test {
 protected:
  Scenario scenario = test::llama_on_dgx(1, 32768, 16);
  RateSet rates = RateSet::defaults();

  struct Peaks {
    double ledger = 0, track = 0;  // bytes, allocated, of the worst stage
    std::int64_t end_minus_begin = 0;
  };
  Peaks peaks(const std::string& text) {
    const Recipe recipe = parse_recipe(text, scenario.base).value();
    scenario.base = recipe;
    Workbench bench = Workbench::build(scenario, rates).value();
    const StepTimeline timeline = step_timeline(bench, scenario.training, recipe, {}).value();
    const std::vector<timeline::MemoryTrack> tracks = step_memory(bench, scenario.training, timeline).tracks;
    Peaks result;
    result.ledger = timeline.candidate.memory.peak.value();
    for (const timeline::MemoryTrack& track : tracks) {
      result.track = std::max(result.track, static_cast<double>(track.peak));
      result.end_minus_begin = std::max(result.end_minus_begin, std::abs(track.points.back().bytes - track.resident));
    }
    return result;
  }
};

TEST_F(StepMemoryTest, PeaksAgreeWithTheLedger) {
  // The ledger counts in-flight micro-batches by formula (1F1B: min(m, pp - p)), the timeline by what its turns really keep. What
  // may differ: whole bytes, and one layer's half that one of them counts as alive and the other as freed: 2 % of these peaks.
  for (const char* recipe :
       {"tp=1,cp=8,pp=1,dp=1", "tp=2,cp=2,pp=2,dp=1", "tp=2,cp=4,pp=1,dp=1,recompute=full", "tp=2,cp=4,pp=1,dp=1,recompute=mlp",
        "tp=8,cp=1,pp=1,dp=1", "tp=1,cp=2,pp=4,dp=1", "tp=1,cp=2,pp=2,dp=2,vpp=2", "tp=2,cp=1,pp=4,dp=1,vpp=8,recompute=full",
        "tp=1,cp=4,pp=2,dp=1,cp_comm=all_gather"}) {
    const Peaks found = peaks(recipe);
    EXPECT_NEAR(found.track / found.ledger, 1.0, 0.02) << recipe;
    EXPECT_EQ(found.end_minus_begin, 0) << recipe << ": what a step allocates it frees";
  }
}

}  // namespace
}  // namespace cpfit
