// The planner on real scenarios: the guard of equal comparisons, neighbours, levers, determinism.
#include "fixture.h"

#include <algorithm>

#include "model/quantity/text.h"
#include "sim/plan/explain.h"
#include "sim/plan/lengths.h"
#include "sim/plan/plan.h"
#include "sim/plan/sources.h"
#include "sim/plan/step_timeline.h"
#include "sim/plan/verdict.h"

namespace cpfit {
namespace {

PlanResult plan_of(const Scenario& scenario) {
  PlanOptions options;
  options.crossover = false;
  options.timeline = false;
  Outcome<PlanResult> result = plan(scenario, RateSet::defaults(), options);
  for (const Problem& problem : result.problems()) ADD_FAILURE() << to_text(problem);
  return std::move(result).value();
}

TEST(Plan, AFitWonByRecomputeIsNeverAGainOfContextParallelism) {
  // 8 H100, 64k tokens of Llama 3 8B, tp 1, no pipeline: without recompute a rank of cp = 8 holds 8,192 tokens at about 139 kB
  // per token and layer, 32 layers: 34 GiB beside 57 GiB of states, out of memory. With full recompute only the layer inputs
  // stay (8 kB per token and layer, 2 GiB): it fits.
  const Scenario scenario =
      test::llama_on_dgx(1, 65536, 8, "[search]\ntp = [1]\npp = [1]\nmicro_batch = [1]\nrecompute = [\"none\", \"full\"]\n");
  const RateSet rates = RateSet::defaults();
  Workbench bench = Workbench::build(scenario, rates).value();
  const auto evaluate = [&](const std::string& text) {
    Recipe recipe = parse_recipe(text, scenario.base).value();
    recipe.sequence_parallel = false;
    return bench.evaluate(scenario.training, recipe).value();
  };
  const Candidate control = evaluate("tp=1,cp=1,pp=1,dp=8,recompute=none");
  ASSERT_EQ(control.verdict.fit, Fit::kOom);
  Candidate changed = evaluate("tp=1,cp=8,pp=1,dp=1,recompute=full");
  ASSERT_EQ(changed.verdict.fit, Fit::kFits);
  annotate(bench, scenario.training, control, changed);
  EXPECT_NE(std::find(changed.differs.begin(), changed.differs.end(), "recompute"), changed.differs.end());
  ASSERT_FALSE(changed.reasons.empty());
  EXPECT_NE(changed.reasons.back().find("fits only because recompute changed"), std::string::npos) << changed.reasons.back();
  EXPECT_NE(changed.reasons.back().find("not a gain of CP"), std::string::npos);

  // The plan itself compares CP degrees at one policy: its control has the recompute of what ships.
  const PlanResult result = plan_of(scenario);
  ASSERT_TRUE(result.ships);
  ASSERT_TRUE(result.has_control);
  EXPECT_EQ(result.control.recipe.recompute, result.ship.recipe.recompute);
  EXPECT_EQ(result.control.recipe.cp, 1);
  // A neighbour with another policy says so first.
  for (const Neighbour& neighbour : result.neighbours) {
    if (neighbour.candidate.recipe.recompute == result.ship.recipe.recompute) continue;
    EXPECT_TRUE(neighbour.sentence.starts_with("recompute=")) << neighbour.sentence;
  }
}

TEST(Plan, FewerRecomputedLayersAreNamedWhereTheyFit) {
  // Llama 3 8B at 128k on 8 GPUs ships with full recompute where the MLP does not run again by itself; memory leaves room for the
  // activations of some layers.
  Scenario scenario = load_scenario(std::string(CPFIT_SOURCE_DIR) + "/examples/llama3-8b-128k-1node.toml").value();
  scenario.search.recompute = {{RecomputeKind::kNone, 0}, {RecomputeKind::kFull, 0}};
  const PlanResult result = plan_of(scenario);
  ASSERT_EQ(result.ship.recipe.recompute.kind, RecomputeKind::kFull);
  const auto lever = std::find_if(result.levers.begin(), result.levers.end(),
                                  [](const Lever& l) { return l.change.find("recompute=block-") != std::string::npos; });
  ASSERT_NE(lever, result.levers.end());
  std::string text = lever->change;
  std::erase(text, ' ');
  Recipe recipe = parse_recipe(text, result.ship.recipe).value();
  const RateSet rates = RateSet::defaults();
  Workbench bench = Workbench::build(scenario, rates).value();
  const Candidate fewer = bench.evaluate(scenario.training, recipe).value();
  EXPECT_TRUE(judge_candidate(fewer, scenario.requirements).feasible());
  EXPECT_NEAR(lever->gain, 1.0 - fewer.time.step() / result.ship.time.step(), 1e-12);
  EXPECT_GE(lever->gain, 0.01);
  --recipe.recompute.block_layers;
  EXPECT_EQ(judge_candidate(bench.evaluate(scenario.training, recipe).value(), scenario.requirements).rule, "memory")
      << "one layer less does not fit";
}

TEST(Plan, RecomputingTheMlpIsNamedWhereItWasNotAskedFor) {
  Scenario scenario = load_scenario(std::string(CPFIT_SOURCE_DIR) + "/examples/llama3-8b-128k-1node.toml").value();
  const PlanResult free = plan_of(scenario);
  ASSERT_EQ(free.ship.recipe.recompute.kind, RecomputeKind::kMlp) << "the file's own list has it";
  const auto names_mlp = [](const Lever& l) { return l.change.find("recompute=mlp") != std::string::npos; };
  EXPECT_EQ(std::ranges::count_if(free.levers, names_mlp), 0);
  scenario.search.recompute = {{RecomputeKind::kNone, 0}, {RecomputeKind::kFull, 0}};
  const PlanResult result = plan_of(scenario);
  const auto lever = std::ranges::find_if(result.levers, names_mlp);
  ASSERT_NE(lever, result.levers.end());
  EXPECT_NEAR(lever->gain, 1.0 - free.ship.time.step() / result.ship.time.step(), 1e-12) << "the recipe a free search ships";
}

TEST(Plan, TheControlIsThereWhetherItWasAskedForOrNot) {
  const PlanResult asked = plan_of(test::llama_on_dgx(1, 65536, 8, "[search]\ncp = [1, 2]\nrecompute = [\"full\"]\n"));
  const PlanResult result = plan_of(test::llama_on_dgx(1, 65536, 8, "[search]\ncp = [2]\nrecompute = [\"full\"]\n"));
  ASSERT_TRUE(result.ships);
  EXPECT_EQ(result.ship.recipe.cp, 2);
  ASSERT_TRUE(result.has_control);
  EXPECT_EQ(result.control.recipe, asked.control.recipe);
  for (const Candidate& candidate : result.candidates) EXPECT_EQ(candidate.recipe.cp, 2) << "the search is as asked";
}

TEST(Plan, RemarksOnWhatAReaderWouldNotGuess) {
  const RateSet rates = RateSet::defaults();
  const auto remarks = [&](const std::string& text, const std::string& recipe) {
    const Scenario scenario = read_scenario("model = \"llama3-8b\"\n" + text, "r.toml").value();
    Workbench bench = Workbench::build(scenario, rates).value();
    const Recipe chosen = parse_recipe(recipe, scenario.base).value();
    bench.prepare(chosen);
    std::string all;
    for (const std::string& remark : remarks_on(bench.context(scenario.training), chosen)) all += remark + "\n";
    return all;
  };
  const std::string h100 = "cluster = \"dgx-h100\"\n[training]\nsequence_length = \"64k\"\nglobal_batch = 8\n";
  EXPECT_EQ(remarks(h100, "tp=1,cp=8,pp=1,dp=1"), "");
  EXPECT_NE(remarks("cluster = \"mi300x-8way\"\n[training]\nsequence_length = \"64k\"\nglobal_batch = 8\n", "tp=1,cp=8,pp=1,dp=1")
                .find("matrix products, attention"),
            std::string::npos);
  EXPECT_NE(remarks(h100 + "framework = \"torchtitan\"\n", "tp=1,cp=8,pp=1,dp=1").find("all-gathers"), std::string::npos);
  EXPECT_EQ(remarks(h100 + "framework = \"torchtitan\"\n", "tp=1,cp=1,pp=1,dp=8"), "");
  // 16k of 64k tokens are real.
  EXPECT_NE(remarks(h100 + "mask = {kind = \"documents\", lengths = [\"16k\"]}\n", "tp=1,cp=8,pp=1,dp=1").find("25 %"),
            std::string::npos);
}

TEST(Plan, SaysWhatTheRulesAskForWhereNothingIsLegal) {
  // 7 tokens a sequence are cut by no zigzag ring, and cp is fixed to 2.
  const PlanResult result = plan_of(test::llama_on_dgx(1, 65537, 8, "[search]\ncp = [2]\n"));
  EXPECT_EQ(result.stats.evaluated, 0);
  EXPECT_NE(result.answer.find("sequence % (2 * cp) = 0"), std::string::npos) << result.answer;
}

TEST(Plan, EveryCandidateUsesTheSameGpusModelAndTokens) {
  const Scenario scenario = test::llama_on_dgx(2, 131072, 16);
  const PlanResult result = plan_of(scenario);
  ASSERT_TRUE(result.ships);
  for (const Candidate& candidate : result.candidates) EXPECT_EQ(candidate.recipe.world(), 16);
  for (const Candidate& candidate : result.front) EXPECT_EQ(candidate.recipe.world(), 16);
  EXPECT_GT(result.stats.legal, 100);
  EXPECT_EQ(result.stats.evaluated, result.stats.legal);
}

TEST(Plan, IsAFunctionOfItsInputs) {
  const Scenario scenario = test::llama_on_dgx(1, 65536, 8);
  const PlanResult a = plan_of(scenario), b = plan_of(scenario);
  EXPECT_EQ(a.answer, b.answer);
  EXPECT_EQ(a.candidates, b.candidates);
  EXPECT_EQ(a.neighbours, b.neighbours);
}

TEST(Plan, NothingFitsIsAnAnswerWithLevers) {
  // 405B on one node: 16 bits of weights alone are 756 GiB of 640.
  const Scenario scenario = [] {
    Outcome<Scenario> read = read_scenario(
        "name = \"too big\"\nmodel = \"llama3.1-405b\"\n[cluster]\npreset = \"dgx-h100\"\nnodes = 1\n[training]\nsequence_length "
        "= \"32k\"\nglobal_batch = 8\n",
        "test.toml");
    return std::move(read).value();
  }();
  const PlanResult result = plan_of(scenario);
  EXPECT_FALSE(result.ships);
  EXPECT_FALSE(result.levers.empty());
  EXPECT_TRUE(
      std::is_sorted(result.levers.begin(), result.levers.end(), [](const Lever& a, const Lever& b) { return a.gain > b.gain; }));
}

TEST(Plan, NodesThatAreBetterLeftIdleAreNamed) {
  // 5 nodes of 8: a factor of 5 that neither the 32 layers, the 32 heads, the 65,536 tokens nor the 8 sequences of a step divide
  // by, so that no product of degrees fills 40 GPUs. 4 nodes are filled; fewer (none rounder than 4 is at least half of 5) are
  // not asked.
  const PlanResult five = plan_of(test::llama_on_dgx(5, 65536, 8)), four = plan_of(test::llama_on_dgx(4, 65536, 8));
  ASSERT_TRUE(four.ships);
  const auto idle = std::find_if(five.levers.begin(), five.levers.end(), [](const Lever& l) { return l.change == "nodes=4"; });
  ASSERT_TRUE(five.ships);
  EXPECT_EQ(five.ship.recipe.pp % 5, 0);
  ASSERT_GT(five.ship.time.step().value(), four.ship.time.step().value());
  ASSERT_NE(idle, five.levers.end());
  EXPECT_NE(idle->gains.find(print_time(four.ship.time.step())), std::string::npos) << idle->gains;
  EXPECT_EQ(idle->costs, "8 GPUs left idle");
  // A power of two has no rounder neighbour.
  for (const Lever& lever : four.levers) EXPECT_NE(lever.differs, std::vector<std::string>{"cluster"}) << lever.change;
}

TEST(Plan, NeighboursSayWhyInOneSentence) {
  const PlanResult result = plan_of(test::llama_on_dgx(2, 131072, 16));
  ASSERT_FALSE(result.neighbours.empty());
  for (const Neighbour& neighbour : result.neighbours) {
    EXPECT_FALSE(neighbour.rule.empty());
    EXPECT_FALSE(neighbour.sentence.empty());
    EXPECT_NE(neighbour.candidate.recipe, result.ship.recipe);
  }
}

TEST(Lengths, TheBatchFollowsTheSequenceByPowersOfTwo) {
  Training training;
  training.sequence = Tokens(131072);
  training.global_batch = 16;  // 2M tokens per step
  EXPECT_EQ(with_sequence(training, 65536).global_batch, 32);
  EXPECT_EQ(with_sequence(training, 98304).global_batch, 16);  // 21.3 sequences would be needed: the power of two below
  EXPECT_EQ(with_sequence(training, 1 << 20).global_batch, 2);
  EXPECT_EQ(with_sequence(training, 1 << 24).global_batch, 1) << "at least one sequence";
}

TEST(Lengths, TheLadderClimbsByQuartersOfAnOctave) {
  EXPECT_EQ(length_ladder(4096, 16384, 1024, 4),
            (std::vector<std::int64_t>{4096, 5120, 6144, 7168, 8192, 10240, 12288, 14336, 16384}));
}

TEST(Confirm, TheShortlistIsSimulatedInItsOrder) {
  const Scenario scenario = test::llama_on_dgx(1, 65536, 8, "[search]\nrecompute = [\"full\"]\n");
  PlanOptions options;
  options.crossover = false;
  const PlanResult result = plan(scenario, RateSet::defaults(), options).value();
  ASSERT_TRUE(result.ships);
  ASSERT_FALSE(result.confirmations.empty());
  EXPECT_LE(result.confirmations.size(), options.confirm.recipes);
  EXPECT_EQ(result.confirmations.front().recipe, to_text(result.ship.recipe));
  EXPECT_EQ(result.confirmations.front().screen_step, result.ship.time.step());
  std::int64_t together = 0;
  for (const TimelineConfirmation& entry : result.confirmations) {
    if (!entry.simulated()) continue;
    together += entry.activities;
    EXPECT_GT(entry.step.value(), 0.0) << entry.recipe;
    EXPECT_EQ(entry.disagreement.empty(), std::abs(entry.step / entry.screen_step - 1.0) <= kAgreement) << entry.recipe;
  }
  EXPECT_LE(together, 2 * options.confirm.activities_together) << "the bound is on estimates, right within a factor of two";
  // The screen alone says the same of everything else.
  PlanOptions alone = options;
  alone.timeline = false;
  const PlanResult screened = plan(scenario, RateSet::defaults(), alone).value();
  EXPECT_TRUE(screened.confirmations.empty());
  EXPECT_EQ(screened.ship.recipe, result.ship.recipe);
  EXPECT_EQ(screened.ship.time, result.ship.time);
  EXPECT_TRUE(result.answer.starts_with(screened.answer)) << result.answer;
}

TEST(Confirm, WhatIsTooLargeIsSkippedAndSaysSo) {
  const Scenario scenario = test::llama_on_dgx(1, 65536, 8, "[search]\nrecompute = [\"full\"]\n");
  PlanOptions options;
  options.crossover = false;
  options.confirm.activities = 10;
  const PlanResult result = plan(scenario, RateSet::defaults(), options).value();
  ASSERT_FALSE(result.confirmations.empty());
  for (const TimelineConfirmation& entry : result.confirmations) {
    EXPECT_FALSE(entry.simulated());
    EXPECT_NE(entry.skipped.find("million activities"), std::string::npos) << entry.skipped;
    EXPECT_EQ(entry.step, Seconds());
  }
}

TEST(Confirm, AShipThatExposesTooMuchOnTheTimelineSaysSo) {
  // A budget between what the screen and what the timeline exposes: only the timeline's judgement can miss it.
  Scenario scenario = test::llama_on_dgx(1, 65536, 8, "[search]\ntp = [1]\ncp = [8]\nrecompute = [\"full\"]\n");
  PlanOptions options;
  options.crossover = false;
  const PlanResult first = plan(scenario, RateSet::defaults(), options).value();
  ASSERT_TRUE(first.ships);
  ASSERT_TRUE(first.confirmations.front().simulated());
  const double screen = first.ship.time.exposed_cp / first.ship.time.step();
  const double timeline = first.confirmations.front().exposed_cp / first.confirmations.front().step;
  ASSERT_GT(timeline, screen * 1.0001) << "choose a scenario whose ring contends";
  scenario.requirements.exposed_budget_share = 0.5 * (screen + timeline);
  const PlanResult result = plan(scenario, RateSet::defaults(), options).value();
  ASSERT_TRUE(result.ships);
  ASSERT_EQ(result.ship.recipe, first.ship.recipe) << "another recipe ships under this budget";
  ASSERT_FALSE(result.ship.reasons.empty());
  EXPECT_NE(result.ship.reasons.back().find("on the timeline cp=8 exposes"), std::string::npos) << result.ship.reasons.back();
  EXPECT_NE(result.answer.find("It misses a requirement there"), std::string::npos) << result.answer;
}

TEST(Confirm, AChangedOrderIsToldOfThePairThatDiffersMost) {
  const auto entry = [](const char* recipe, double screen, double timeline) {
    TimelineConfirmation confirmation;
    confirmation.recipe = recipe;
    confirmation.screen_step = Seconds(screen);
    confirmation.step = Seconds(timeline);
    return confirmation;
  };
  const TimelineConfirmation a = entry("tp=1,cp=8,pp=1,dp=1", 10.0, 12.0), b = entry("tp=2,cp=4,pp=1,dp=1", 11.0, 11.5),
                             c = entry("tp=4,cp=2,pp=1,dp=1", 13.0, 11.0);
  // 12 / 11 is the largest turn: c saves 1 - 11/12 = 8.33 % of a.
  const std::string sentence = changed_order({a, b, c}, 0.02);
  EXPECT_NE(sentence.find("cp=2 x tp=4"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("cp=8 x tp=1"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("8.33 %"), std::string::npos) << sentence;
  EXPECT_EQ(changed_order({a, b, c}, 0.10), "") << "inside the bound";
  EXPECT_EQ(changed_order({a}, 0.02), "");
  TimelineConfirmation skipped = c;
  skipped.skipped = "too large";
  EXPECT_EQ(changed_order({a, skipped}, 0.02), "");
}

}  // namespace
}  // namespace cpfit
