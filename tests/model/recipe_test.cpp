// The text of a recipe: what is printed reads back as the same recipe, and a slip of the pen gets an answer.
#include "model/recipe/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/recipe/recipe_names.h"

namespace cpfit {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Recipe parsed(const std::string& text) {
  const Outcome<Recipe> outcome = parse_recipe(text, Recipe{});
  EXPECT_TRUE(outcome.ok()) << text << ": " << (outcome.ok() ? "" : to_text(outcome.problems().front()));
  return outcome.ok() ? outcome.value() : Recipe{};
}

/// The only problem of a text that must be refused.
Problem refused(const std::string& text) {
  const Outcome<Recipe> outcome = parse_recipe(text, Recipe{});
  EXPECT_FALSE(outcome.ok()) << text;
  EXPECT_EQ(outcome.problems().size(), 1u) << text;
  return outcome.problems().empty() ? Problem{} : outcome.problems().front();
}

/// A recipe in which every field differs from its default.
Recipe everything() {
  Recipe recipe;
  recipe.tp = 2;
  recipe.cp = 8;
  recipe.pp = 4;
  recipe.dp = 3;
  recipe.vpp = 5;
  recipe.cp_comm = CpComm::kA2aP2p;
  recipe.a2a_degree = 4;
  recipe.window = 2;
  recipe.shard_layout = ShardLayout::kStriped;
  recipe.stage_layout.kind = LayoutKind::kExplicit;
  recipe.stage_layout.layers = {1, 2, 2, 2, 3};
  recipe.schedule = Schedule::kGpipe;
  recipe.micro_batch = 2;
  recipe.recompute = {RecomputeKind::kBlock, 5};
  recipe.state_sharding = StateSharding::kZero3;
  recipe.state_shards = 6;
  recipe.sequence_parallel = false;
  recipe.precision = Precision::kMxfp8;
  recipe.overlap_tp = true;
  recipe.overlap_grad_reduce = false;
  recipe.overlap_param_gather = false;
  recipe.overlap_p2p = false;
  recipe.rank_order = {{Axis::kTp, Axis::kCp, Axis::kPp, Axis::kDp}};
  recipe.framework = "torchtitan";
  return recipe;
}

TEST(RecipeText, DefaultPrintsTheFourDegrees) { EXPECT_EQ(to_text(Recipe{}), "tp=1,cp=1,pp=1,dp=1"); }

TEST(RecipeText, EveryFieldPrintsAndReadsBack) {
  EXPECT_EQ(to_text(everything()),
            "tp=2,cp=8,cp_comm=a2a+p2p,a2a_degree=4,window=2,pp=4,dp=3,vpp=5,shard_layout=striped,"
            "stage_layout=explicit=1/3*2/3,schedule=gpipe,micro_batch=2,recompute=block-5,state_sharding=zero3,"
            "state_shards=6,sequence_parallel=false,precision=mxfp8,overlap_tp=true,overlap_grad_reduce=false,overlap_param_"
            "gather=false,"
            "overlap_p2p=false,rank_order=tp-cp-pp-dp,framework=torchtitan");
  EXPECT_EQ(parsed(to_text(everything())), everything());
}

template <class E>
void every_value_reads_back(E Recipe::* field) {
  for (const NamedValue<E>& entry : named_values<E>()) {
    Recipe recipe;
    recipe.*field = entry.value;
    EXPECT_EQ(parsed(to_text(recipe)), recipe) << entry.name;
  }
}

TEST(RecipeText, EveryNamedValueReadsBack) {
  every_value_reads_back(&Recipe::cp_comm);
  every_value_reads_back(&Recipe::shard_layout);
  every_value_reads_back(&Recipe::state_sharding);
  every_value_reads_back(&Recipe::precision);
  every_value_reads_back(&Recipe::schedule);
}

TEST(RecipeText, EveryPairOfChangedFieldsReadsBack) {
  // The fields whose text depends on another field (a2a_degree, window, schedule) must not lose their value in any company.
  for (const CpComm comm : {CpComm::kP2p, CpComm::kA2a, CpComm::kA2aP2p, CpComm::kDoubleRing}) {
    for (const std::int32_t cp : {1, 4}) {
      for (const std::int32_t degree : {1, 2, 4}) {
        for (const std::int32_t vpp : {1, 2}) {
          for (const Schedule schedule : {Schedule::kOneFOneB, Schedule::kInterleaved}) {
            Recipe recipe;
            recipe.cp_comm = comm;
            recipe.cp = cp;
            recipe.a2a_degree = degree;
            recipe.window = degree;
            recipe.vpp = vpp;
            recipe.schedule = schedule;
            EXPECT_EQ(parsed(to_text(recipe)), recipe) << to_text(recipe);
          }
        }
      }
    }
  }
}

TEST(RecipeText, TextAgainstABaseReadsBackOverThatBase) {
  // The plain text leaves defaults out, so over a base that holds something else it reads back as another recipe.
  Recipe plain;
  plain.cp = 2;
  plain.cp_comm = CpComm::kA2a;
  plain.a2a_degree = 2;
  Recipe vpp = plain;
  vpp.vpp = 2;
  vpp.schedule = Schedule::kInterleaved;
  for (const Recipe& recipe : {Recipe{}, plain, vpp, everything()}) {
    for (const Recipe& base : {Recipe{}, plain, vpp, everything()}) {
      EXPECT_EQ(parse_recipe(to_text(recipe, base), base).value(), recipe) << to_text(recipe, base);
      EXPECT_EQ(parse_recipe(to_complete_text(recipe), base).value(), recipe) << to_complete_text(recipe);
    }
    EXPECT_EQ(to_text(recipe, Recipe{}), to_text(recipe));
  }
  EXPECT_NE(parse_recipe(to_text(plain), everything()).value(), plain);
}

TEST(RecipeText, WhatFollowsFromANamedKeyIsSet) {
  EXPECT_EQ(parsed("cp=8,cp_comm=a2a").a2a_degree, 8);
  EXPECT_EQ(parsed("pp=2,vpp=2").schedule, Schedule::kInterleaved);
  Recipe a2a = parsed("cp=8,cp_comm=a2a");
  EXPECT_EQ(parse_recipe("cp_comm=p2p", a2a).value().a2a_degree, 1);
  EXPECT_EQ(parse_recipe("cp=4", a2a).value().a2a_degree, 4);
}

TEST(RecipeText, StatesShardedOverAllDataRanksAreTheDefaultHoweverWritten) {
  const Recipe groups = parsed("cp=2,pp=1,dp=8,state_shards=4");
  EXPECT_EQ(shard_ranks(groups), 4);
  EXPECT_EQ(shard_replicas(groups), 4);  // 2 * 8 / 4
  EXPECT_EQ(to_text(groups), "tp=1,cp=2,pp=1,dp=8,state_shards=4");
  EXPECT_EQ(parse_recipe("state_shards=all", groups).value().state_shards, 0);
  const Recipe all = parsed("cp=2,pp=1,dp=8,state_shards=16");
  EXPECT_EQ(shard_replicas(all), 1);
  EXPECT_EQ(to_text(all), "tp=1,cp=2,pp=1,dp=8");
  EXPECT_TRUE(differences(all, parsed("cp=2,pp=1,dp=8")).empty());
  EXPECT_EQ(differences(all, groups), std::vector<std::string>{"state_shards"});
  EXPECT_EQ(refused("shard=4").repair, "did you mean 'state_shards'?");
  EXPECT_EQ(refused("state_shards=0").code, "recipe.not_positive");
}

TEST(RecipeText, KeysNotNamedKeepTheBase) {
  const Recipe base = everything();
  Recipe expected = base;
  expected.tp = 4;
  EXPECT_EQ(parse_recipe(" tp = 4 ", base).value(), expected);
  EXPECT_EQ(parse_recipe("", base).value(), base);
}

TEST(RecipeText, SlipsAreAnsweredWithTheLikelyMeaning) {
  EXPECT_THAT(refused("tq=2").repair, HasSubstr("'tp'"));
  EXPECT_THAT(refused("mbs=2").repair, HasSubstr("'micro_batch'"));
  EXPECT_THAT(refused("state_shardin=zero1").repair, HasSubstr("'state_sharding'"));
  EXPECT_THAT(refused("cp_comm=p2").repair, HasSubstr("'p2p'"));
  EXPECT_EQ(refused("precision=fp8").repair, "did you mean 'fp8_delayed' or 'fp8_current' or 'fp8_block'?");
  EXPECT_EQ(refused("tp=2 cp=4").repair, "separate the keys by commas");
  EXPECT_EQ(refused("tp").code, "recipe.syntax");
  EXPECT_EQ(refused("tp=2,").code, "recipe.syntax");
  EXPECT_EQ(refused("tp=2,,cp=2").code, "recipe.syntax");
  EXPECT_EQ(refused("tp=2,cp=4,tp=4").code, "recipe.duplicate_key");
  EXPECT_EQ(refused("sequence_parallel=maybe").code, "recipe.not_a_flag");
  EXPECT_THAT(refused("recompute=block").repair, HasSubstr("block-5"));
  EXPECT_EQ(refused("recompute=block-0").code, "recipe.recompute");
  EXPECT_EQ(refused("framework=").code, "recipe.framework");
}

TEST(RecipeText, ImpossibleDegreesAreRefused) {
  EXPECT_EQ(refused("tp=0").code, "recipe.not_positive");
  EXPECT_EQ(refused("dp=-4").code, "recipe.not_positive");
  EXPECT_EQ(refused("cp=2.5").code, "recipe.not_a_number");
  EXPECT_EQ(refused("cp=").code, "recipe.not_a_number");
  EXPECT_EQ(refused("cp=1048577").code, "recipe.too_large");
  EXPECT_EQ(refused("cp=99999999999999999999").code, "recipe.too_large");
  // Each degree is allowed, their product of 2^80 is not, and it must not wrap around.
  EXPECT_EQ(refused("tp=1048576,cp=1048576,pp=1048576,dp=1048576").code, "recipe.too_large");
}

TEST(RecipeText, EveryProblemOfATextIsNamed) {
  const Outcome<Recipe> outcome = parse_recipe("tp=0,foo=1,recompute=some", Recipe{});
  ASSERT_EQ(outcome.problems().size(), 3u);
  EXPECT_EQ(outcome.problems()[0].where, "tp");
  EXPECT_EQ(outcome.problems()[1].where, "foo");
  EXPECT_EQ(outcome.problems()[2].where, "recompute");
}

TEST(StageLayoutText, EveryKindReadsBack) {
  for (const std::string text : {"even", "embedding_loss", "cost_balanced", "first=7;last=7", "first=3", "last=2",
                                 "explicit=2/34*2/3", "explicit=0/126*1/0", "explicit=5"}) {
    const Outcome<StageLayout> layout = parse_stage_layout(text);
    ASSERT_TRUE(layout.ok()) << text;
    EXPECT_EQ(parse_stage_layout(to_text(*layout)).value(), *layout) << text;
  }
  EXPECT_EQ(parse_stage_layout("explicit=2/3*4/1").value().layers, (std::vector<std::int32_t>{2, 4, 4, 4, 1}));
  EXPECT_EQ(to_text(parse_stage_layout("explicit=1/1/2").value()), "explicit=2*1/2");
}

TEST(StageLayoutText, BadTextsAreRefused) {
  for (const std::string text :
       {"", "evn", "first_last", "explicit", "explicit=", "explicit=2/x", "explicit=-1", "first=0", "first=2;first=3",
        "first=2;middle=3", "explicit=9999999*9999999", "first=99999999999999999999"}) {
    EXPECT_FALSE(parse_stage_layout(text).ok()) << text;
  }
  EXPECT_THAT(parse_stage_layout("evn").problems().front().message, HasSubstr("'even'"));
}

TEST(RankOrderText, ReadsMegatronsStringAndRefusesTheRest) {
  EXPECT_EQ(parse_rank_order("tp-cp-ep-dp-pp").value(), RankOrder{});
  EXPECT_EQ(to_text(parse_rank_order("tp-cp-pp-dp").value()), "tp-cp-pp-dp");
  for (const std::string text : {"", "tp-cp-dp", "tp-cp-dp-dp", "tp-cp-dp-xp", "tp,cp,dp,pp"}) {
    EXPECT_FALSE(parse_rank_order(text).ok()) << text;
  }
}

TEST(Differences, NamesWhatSeparatesTwoRecipes) {
  EXPECT_THAT(differences(everything(), everything()), IsEmpty());
  EXPECT_EQ(differences(Recipe{}, everything()), recipe_keys());
  EXPECT_THAT(differences(parsed("tp=2,recompute=full"), parsed("tp=2,micro_batch=2")), ElementsAre("micro_batch", "recompute"));
  // a2a's degree follows from cp and interleaving from vpp: neither is a difference of its own.
  EXPECT_THAT(differences(parsed("cp=4"), parsed("cp=8,cp_comm=a2a")), ElementsAre("cp", "cp_comm"));
  EXPECT_THAT(differences(parsed("pp=2"), parsed("pp=2,vpp=2")), ElementsAre("vpp"));
}

}  // namespace
}  // namespace cpfit
