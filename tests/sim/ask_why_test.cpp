// ask why-not and ask matters.
#include "fixture.h"

#include <algorithm>

#include "sim/ask/fit_space.h"
#include "sim/ask/sensitivity.h"
#include "sim/ask/why_not.h"

namespace cpfit::ask {
namespace {

struct Bench {
  Scenario scenario;
  RateSet rates = RateSet::defaults();
  Workbench bench;
  explicit Bench(Scenario of) : scenario(std::move(of)), bench(Workbench::build(scenario, rates).value()) {}
};

constexpr const char* kPlain = "[search]\ntp = [1]\npp = [1]\nmicro_batch = [1]\nrecompute = [\"none\"]\n";

TEST(AskWhyNot, NamesTheBindingRule) {
  // 64k tokens, tp 1, no recompute: a rank of cp 8 holds 8,192 tokens at about 139 kB and layer, 34 GiB beside 57 GiB of states.
  Bench memory(test::llama_on_dgx(1, 65536, 8, kPlain));
  const WhyNot oom = why_not(memory.bench, 4);
  EXPECT_EQ(oom.rule, WhyNotRule::kMemory);
  ASSERT_TRUE(oom.asked.has_value());
  EXPECT_EQ(oom.asked->recipe.cp, 4);
  EXPECT_FALSE(oom.ships);
  EXPECT_NE(oom.sentence.find("cp=4 misses by"), std::string::npos) << oom.sentence;

  Bench fits(test::llama_on_dgx(1, 65536, 8, "[search]\ntp = [1, 2, 4]\npp = [1]\nmicro_batch = [1]\n"));
  const WhyNot none = why_not(fits.bench, 3);  // 8 GPUs
  EXPECT_EQ(none.rule, WhyNotRule::kIllegal);
  EXPECT_FALSE(none.violations.empty());
  int ships = 0;
  for (const std::int32_t cp : {1, 2, 4, 8}) {
    const WhyNot answer = why_not(fits.bench, cp);
    EXPECT_TRUE(answer.ships);
    ASSERT_TRUE(answer.asked && answer.best);
    if (answer.rule == WhyNotRule::kItShips) {
      ++ships;
      EXPECT_EQ(answer.best->recipe.cp, cp);
    }
    if (answer.rule == WhyNotRule::kSlower) {
      EXPECT_GT(answer.asked->time.step(), answer.best->time.step());
    }
    // The parts of the difference are the difference.
    double sum = 0;
    for (const TimePart& part : answer.parts) sum += part.asked.value() - part.best.value();
    EXPECT_NEAR(sum, answer.asked->time.step().value() - answer.best->time.step().value(), 1e-9);
    EXPECT_FALSE(answer.sentence.empty());
  }
  EXPECT_EQ(ships, 1);
}

/// What is said to change nothing changes nothing: every value of the key gives the same step and the same memory.
TEST(AskMatters, WhatIsSaidToChangeNothingChangesNothing) {
  Bench at(test::llama_on_dgx(1, 32768, 8));
  int checked = 0;
  for (const char* text :
       {"tp=1,cp=1,pp=1,dp=8,recompute=full", "tp=2,cp=2,pp=1,dp=2,recompute=full", "tp=1,cp=4,pp=2,dp=1,recompute=full",
        "tp=4,cp=1,pp=2,dp=1,vpp=2,recompute=full", "tp=1,cp=2,pp=1,dp=4,state_sharding=none,recompute=full"}) {
    const Recipe base = parse_recipe(text, at.scenario.base).value();
    const Outcome<Candidate> here = at.bench.evaluate(at.scenario.training, base);
    ASSERT_TRUE(here.ok()) << text << ": " << to_text(here.problems().front());
    for (const char* change : {"cp_comm=all_gather", "shard_layout=contiguous", "sequence_parallel=false", "overlap_tp=true",
                               "overlap_p2p=false", "overlap_grad_reduce=false", "overlap_param_gather=false", "window=2",
                               "stage_layout=embedding_loss", "schedule=gpipe"}) {
      const std::string key = std::string(change).substr(0, std::string(change).find('='));
      const Outcome<Sensitivity> answer = sensitivity(at.bench, at.rates, base, key);
      ASSERT_TRUE(answer.ok()) << key;
      if (answer->matters()) continue;
      const Outcome<Candidate> other = at.bench.evaluate(at.scenario.training, parse_recipe(change, base).value());
      if (!other.ok()) continue;  // another rule forbids it
      EXPECT_EQ(other->time.step().value(), here->time.step().value()) << text << " " << change << ": " << answer->because;
      EXPECT_EQ(other->memory.device.value(), here->memory.device.value()) << text << " " << change << ": " << answer->because;
      ++checked;
    }
  }
  EXPECT_GT(checked, 10);
}

TEST(AskMatters, ComparesWithEverythingElseHeld) {
  Bench at(test::llama_on_dgx(1, 32768, 8));
  const Recipe base = parse_recipe("tp=2,cp=2,pp=1,dp=2,recompute=full", at.scenario.base).value();
  const Outcome<Sensitivity> recompute = sensitivity(at.bench, at.rates, base, "recompute");
  ASSERT_TRUE(recompute.ok());
  ASSERT_TRUE(recompute->matters());
  for (const Variation& variation : recompute->variations) {
    ASSERT_TRUE(variation.candidate) << variation.reason;
    if (variation.value != "recompute=none") continue;
    EXPECT_GT(variation.speed_change, 0.0) << "nothing runs twice";
    EXPECT_GT(variation.memory_change.value(), 0.0) << "everything stays";
  }
  const Outcome<Sensitivity> gemm = sensitivity(at.bench, at.rates, base, "rates.gemm");
  ASSERT_TRUE(gemm.ok());
  ASSERT_TRUE(gemm->matters());
  for (const Variation& variation : gemm->variations) {
    EXPECT_LT(variation.speed_change, 0.0);
    EXPECT_GT(variation.speed_change, -0.1);  // a part of the step 10 % slower is less than the whole 10 % slower
  }
  EXPECT_EQ(sensitivity(at.bench, at.rates, base, "recompte").problems().front().code, "ask.unknown_key");
  EXPECT_FALSE(sensitivity(at.bench, at.rates, base, "dp")->matters());
}

}  // namespace
}  // namespace cpfit::ask
