// ask longest and ask fewest, against the planner's own verdicts.
#include "fixture.h"

#include <algorithm>

#include "sim/ask/fewest.h"
#include "sim/ask/fit_space.h"
#include "sim/ask/longest.h"

namespace cpfit::ask {
namespace {

constexpr const char* kNarrow = "[search]\ntp = [1]\npp = [1]\nmicro_batch = [1]\nrecompute = [\"none\", \"full\"]\n";

struct Bench {
  Scenario scenario;
  RateSet rates = RateSet::defaults();
  Workbench bench;
  explicit Bench(Scenario of) : scenario(std::move(of)), bench(Workbench::build(scenario, rates).value()) {}
  Fit fit(const Recipe& recipe, std::int64_t tokens) {
    return bench.evaluate(with_length(scenario.training, tokens), recipe).value().verdict.fit;
  }
};

TEST(AskLongest, OneUnitMoreDoesNotFit) {
  Bench at(test::llama_on_dgx(1, 65536, 8, kNarrow));
  const LongestAnswer answer = longest_sequence(at.bench, std::nullopt);
  ASSERT_EQ(answer.rows.size(), 4u);  // cp 1, 2, 4, 8 divide 8 GPUs
  ASSERT_TRUE(answer.best.has_value());
  for (const LongestRow& row : answer.rows) {
    ASSERT_TRUE(row.candidate.has_value()) << row.cp << ": " << row.reason;
    const Recipe& recipe = row.candidate->recipe;
    const std::int64_t unit = std::int64_t{2} * recipe.cp * recipe.tp;
    EXPECT_EQ(row.tokens % unit, 0);
    EXPECT_EQ(at.fit(recipe, row.tokens), Fit::kFits) << "cp " << row.cp;
    EXPECT_NE(at.fit(recipe, row.tokens + unit), Fit::kFits) << "cp " << row.cp;
    ASSERT_EQ(row.by_recompute.size(), 2u);
    EXPECT_LE(row.by_recompute[0].second, row.by_recompute[1].second) << "recompute never shortens";
    EXPECT_EQ(row.tokens, std::max(row.by_recompute[0].second, row.by_recompute[1].second));
  }
  // At one tp the states are the same, and more ranks hold less of a sequence each.
  for (std::size_t i = 1; i < answer.rows.size(); ++i) EXPECT_GT(answer.rows[i].tokens, answer.rows[i - 1].tokens);
  EXPECT_EQ(answer.rows[*answer.best].cp, 8);
  EXPECT_NE(sentence_of(answer).find(std::to_string(answer.rows.back().tokens)), std::string::npos);
}

TEST(AskLongest, AFixedRecipeVariesItsDegreeOnly) {
  Bench at(test::llama_on_dgx(1, 65536, 8));
  const Recipe fixed = parse_recipe("tp=2,cp=2,pp=1,dp=2,recompute=full", at.scenario.base).value();
  const LongestAnswer answer = longest_sequence(at.bench, fixed);
  ASSERT_EQ(answer.rows.size(), 4u);
  for (const LongestRow& row : answer.rows) {
    if (row.cp == 8) {  // 2 * 8 * 1 of 8 GPUs
      EXPECT_EQ(row.tokens, 0);
      EXPECT_NE(row.reason.find("does not divide 8 GPUs"), std::string::npos) << row.reason;
      continue;
    }
    ASSERT_TRUE(row.candidate.has_value()) << row.reason;
    EXPECT_EQ(row.candidate->recipe.tp, 2);
    EXPECT_EQ(row.candidate->recipe.dp, 4 / row.cp);
    EXPECT_EQ(row.candidate->recipe.recompute.kind, RecomputeKind::kFull);
  }
}

TEST(AskFewest, TheSizeBelowDoesNotFit) {
  // 131,072 tokens of Llama 3 8B: 16 bytes a parameter of states alone are 120 GiB, so one GPU of 80 GiB cannot.
  Bench at(test::llama_on_dgx(2, 131072, 16,
                              "[search]\ntp = [1, 2, 4, 8]\npp = [1]\nmicro_batch = [1]\nrecompute = [\"none\", \"full\"]\n"));
  const Outcome<FewestAnswer> answer = fewest_gpus(at.bench);
  ASSERT_TRUE(answer.ok());
  ASSERT_TRUE(answer->fits.has_value());
  std::int64_t before = 0;
  for (std::size_t i = 0; i < answer->rows.size(); ++i) {
    const FewestRow& row = answer->rows[i];
    EXPECT_GT(row.gpus, before);
    before = row.gpus;
    if (i < *answer->fits) {
      EXPECT_FALSE(row.candidate.has_value());
      if (row.legal > 0) {
        EXPECT_GT(row.missing.value(), 0.0) << row.gpus;
      }
    }
  }
  const FewestRow& fits = answer->rows[*answer->fits];
  EXPECT_GT(fits.gpus, 1);
  EXPECT_LE(fits.gpus, 8);  // cp 8 with full recompute fits one node (the planner's test)
  EXPECT_EQ(fits.candidate->verdict.fit, Fit::kFits);
  EXPECT_EQ(fits.candidate->recipe.world(), fits.gpus);
  EXPECT_NE(sentence_of(*answer, at.scenario).find("[search] restricts tp, pp"), std::string::npos);
}

TEST(AskFewest, AShorterSequenceNeedsNoMore) {
  std::int64_t longer = 0;
  for (const std::int64_t tokens : {262144, 131072, 32768}) {
    Bench at(test::llama_on_dgx(1, tokens, 16, "[search]\ntp = [1, 2, 4, 8]\npp = [1]\nmicro_batch = [1]\n"));
    const Outcome<FewestAnswer> answer = fewest_gpus(at.bench);
    ASSERT_TRUE(answer.ok() && answer->fits);
    const std::int64_t gpus = answer->rows[*answer->fits].gpus;
    if (longer != 0) {
      EXPECT_LE(gpus, longer) << tokens;
    }
    longer = gpus;
  }
}

}  // namespace
}  // namespace cpfit::ask
