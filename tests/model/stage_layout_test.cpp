#include "model/recipe/stage_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace cpfit {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

Architecture with_layers(std::int64_t layers) {
  Architecture model;
  model.layers = layers;
  model.hidden = 4096;
  model.ffn_hidden = 14336;
  model.heads = 32;
  model.kv_heads = 8;
  model.head_dim = 128;
  model.vocab = 128256;
  return model;
}

Recipe recipe_of(std::int32_t pp, std::int32_t vpp, const std::string& layout) {
  Recipe recipe;
  recipe.pp = pp;
  recipe.vpp = vpp;
  recipe.stage_layout = parse_stage_layout(layout).value();
  return recipe;
}

ResolvedLayout resolved(std::int64_t layers, std::int32_t pp, std::int32_t vpp, const std::string& layout) {
  const Outcome<ResolvedLayout> outcome = resolve_layout(with_layers(layers), recipe_of(pp, vpp, layout));
  EXPECT_TRUE(outcome.ok()) << layout << ": " << (outcome.ok() ? "" : to_text(outcome.problems().front()));
  return outcome.ok() ? outcome.value() : ResolvedLayout{};
}

Problem refused(std::int64_t layers, std::int32_t pp, std::int32_t vpp, const std::string& layout) {
  const Outcome<ResolvedLayout> outcome = resolve_layout(with_layers(layers), recipe_of(pp, vpp, layout));
  EXPECT_FALSE(outcome.ok()) << layout;
  EXPECT_EQ(layers_of_fullest_stage(with_layers(layers), recipe_of(pp, vpp, layout)), 0);
  return outcome.ok() ? Problem{} : outcome.problems().front();
}

TEST(StageLayout, Even) {
  EXPECT_THAT(resolved(32, 4, 1, "even").layers_of_stage, ElementsAre(8, 8, 8, 8));
  const ResolvedLayout interleaved = resolved(32, 4, 2, "even");
  EXPECT_THAT(interleaved.layers_of_stage, ElementsAre(8, 8, 8, 8));
  EXPECT_THAT(interleaved.layers_of_chunk, ElementsAre(4, 4, 4, 4, 4, 4, 4, 4));
}

TEST(StageLayout, Llama405BOnSixteenStages) {
  // 126 + embedding + loss = 128 over 16 * 8 chunks: one each; the first chunk is the embedding alone, the last the head alone.
  const ResolvedLayout counted = resolved(126, 16, 8, "embedding_loss");
  ASSERT_EQ(counted.layers_of_chunk.size(), 128u);
  EXPECT_EQ(counted.layers_of_chunk.front(), 0);
  EXPECT_EQ(counted.layers_of_chunk.back(), 0);
  EXPECT_EQ(std::accumulate(counted.layers_of_chunk.begin(), counted.layers_of_chunk.end(), 0), 126);
  EXPECT_EQ(counted.layers_of_stage.front(), 7);
  EXPECT_EQ(counted.layers_of_stage[1], 8);
  EXPECT_EQ(counted.layers_of_stage.back(), 7);

  // Without chunks: 126 - 7 - 7 = 112 = 14 stages of 8.
  const ResolvedLayout ends = resolved(126, 16, 1, "first=7;last=7");
  EXPECT_EQ(ends.layers_of_stage, counted.layers_of_stage);
  EXPECT_EQ(layers_of_fullest_stage(with_layers(126), recipe_of(16, 1, "first=7;last=7")), 8);

  // 126 = 2 * 63 does not divide by 16, and the answer names what does: 14 and 18 divide 126, 128 divides by 16.
  const Problem even = refused(126, 16, 1, "even");
  EXPECT_THAT(even.message, HasSubstr("126 layers"));
  EXPECT_THAT(even.repair, HasSubstr("14 or 18"));
  EXPECT_THAT(even.repair, HasSubstr("embedding_loss"));
}

TEST(StageLayout, EmbeddingAndLossAsLayers) {
  // 30 + 2 = 32 over 4 stages: 8 each, the ends give one away.
  EXPECT_THAT(resolved(30, 4, 1, "embedding_loss").layers_of_stage, ElementsAre(7, 8, 8, 7));
  EXPECT_THAT(resolved(30, 4, 2, "embedding_loss").layers_of_chunk, ElementsAre(3, 4, 4, 4, 4, 4, 4, 3));
  EXPECT_THAT(resolved(30, 1, 1, "embedding_loss").layers_of_stage, ElementsAre(30));
  EXPECT_THAT(refused(32, 4, 1, "embedding_loss").message, HasSubstr("34"));
}

TEST(StageLayout, FirstAndLast) {
  EXPECT_THAT(resolved(30, 4, 1, "first=6;last=8").layers_of_stage, ElementsAre(6, 8, 8, 8));
  EXPECT_THAT(resolved(30, 4, 1, "first=6").layers_of_stage, ElementsAre(6, 8, 8, 8));  // 24 over the other three
  EXPECT_THAT(resolved(30, 4, 1, "last=6").layers_of_stage, ElementsAre(8, 8, 8, 6));
  EXPECT_THAT(resolved(10, 2, 1, "first=4;last=6").layers_of_stage, ElementsAre(4, 6));
  EXPECT_THAT(resolved(28, 4, 2, "first=6;last=6").layers_of_chunk, ElementsAre(3, 4, 4, 3, 3, 4, 4, 3));
  refused(30, 4, 1, "first=6;last=7");    // 17 over two stages
  refused(30, 4, 1, "first=15;last=15");  // nothing left for the middle
  refused(30, 4, 1, "first=20;last=20");
  refused(10, 2, 1, "first=4;last=5");  // a layer without a stage
  refused(30, 1, 1, "first=30");
  refused(30, 4, 4, "first=6;last=8");  // 6 layers on four chunks
}

TEST(StageLayout, Explicit) {
  // NeMo's 70B FP8 layout: 40 chunks of pp 8, vpp 5: 2, 34 x 2, 3, 3 x 2, 1 = 2 + 68 + 3 + 6 + 1 = 80 layers.
  const ResolvedLayout nemo = resolved(80, 8, 5, "explicit=2/34*2/3/3*2/1");
  EXPECT_EQ(nemo.layers_of_chunk.size(), 40u);
  // Chunk 35 is v = 4 of stage 3 (4*8 + 3): that stage holds 11, the last one 9.
  EXPECT_THAT(nemo.layers_of_stage, ElementsAre(10, 10, 10, 11, 10, 10, 10, 9));
  EXPECT_THAT(resolved(10, 4, 1, "explicit=0/5/5/0").layers_of_stage, ElementsAre(0, 5, 5, 0));
  EXPECT_THAT(resolved(16, 2, 2, "explicit=6/10").layers_of_chunk, ElementsAre(3, 5, 3, 5));
  EXPECT_THAT(refused(10, 4, 1, "explicit=3/3/3/3").message, HasSubstr("12 layers, the model has 10"));
  EXPECT_THAT(refused(10, 4, 1, "explicit=5/5").message, HasSubstr("one entry per stage (4)"));
  EXPECT_THAT(resolved(10, 4, 1, "explicit=5/0/5/0").layers_of_stage,
              ElementsAre(5, 0, 5, 0));  // who may is a matter of legality
  refused(16, 2, 2, "explicit=5/11");    // 5 layers on two chunks
}

TEST(StageLayout, SplitByCost) {
  // nanotron's 8.9B: 32 layers, H 4096, F 14336, a*d 4096, V 131072. In units of H: a layer 4*4096 + 3*14336 = 59,392, the head
  // 131,072; total 32*59,392 + 131,072 = 2,031,616, a sixteenth 126,976. Running sums 59,392 (below), 118,784 (below), 178,176
  // (above 126,976): stage 0 holds 3. Stage 1 ends at the first sum above 253,952: 5 layers = 296,960, so it holds 2.
  Architecture model = with_layers(32);
  model.vocab = 131072;
  const Outcome<ResolvedLayout> split = resolve_layout(model, recipe_of(16, 1, "cost_balanced"));
  ASSERT_TRUE(split.ok());
  EXPECT_EQ(split->layers_of_stage[0], 3);
  EXPECT_EQ(split->layers_of_stage[1], 2);
  EXPECT_EQ(std::accumulate(split->layers_of_stage.begin(), split->layers_of_stage.end(), 0), 32);
  // After 32 layers the sum is 1,900,544, below 15 sixteenths = 1,904,640: the head ends stage 14, stage 15 has the loss alone.
  EXPECT_EQ(split->layers_of_stage[15], 0);
  EXPECT_EQ(resolve_layout(model, recipe_of(1, 1, "cost_balanced"))->layers_of_stage[0], 32);
  // The threshold must be exceeded, not met: without a head, 1 of 2 layers meets one half, so both stay on stage 0.
  model = with_layers(2);
  model.vocab = 0;
  EXPECT_THAT(resolve_layout(model, recipe_of(2, 1, "cost_balanced"))->layers_of_stage, ElementsAre(2, 0));
  // 1 layer, norm, head, cast and loss are five blocks after the embedding: eight stages cannot all have one.
  EXPECT_FALSE(resolve_layout(with_layers(1), recipe_of(8, 1, "cost_balanced")).ok());
  EXPECT_FALSE(resolve_layout(with_layers(32), recipe_of(4, 2, "cost_balanced")).ok());  // no chunks
}

TEST(StageLayout, EveryResolvedLayoutIsConsistent) {
  int legal = 0;
  for (const std::string layout : {"even", "embedding_loss", "first=2;last=2", "first=4", "cost_balanced"}) {
    for (std::int64_t layers = 1; layers <= 48; ++layers) {
      for (const std::int32_t pp : {1, 2, 3, 4, 8, 16}) {
        for (const std::int32_t vpp : {1, 2, 3, 4}) {
          const Outcome<ResolvedLayout> outcome = resolve_layout(with_layers(layers), recipe_of(pp, vpp, layout));
          if (!outcome) {
            EXPECT_FALSE(outcome.problems().front().message.empty());
            continue;
          }
          ++legal;
          ASSERT_EQ(outcome->layers_of_stage.size(), static_cast<std::size_t>(pp));
          ASSERT_EQ(outcome->layers_of_chunk.size(), static_cast<std::size_t>(pp * vpp));
          std::vector<std::int32_t> sums(static_cast<std::size_t>(pp), 0);
          for (std::size_t c = 0; c < outcome->layers_of_chunk.size(); ++c) {
            sums[c % static_cast<std::size_t>(pp)] += outcome->layers_of_chunk[c];
          }
          EXPECT_EQ(sums, outcome->layers_of_stage);
          EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), std::int64_t{0}), layers);
          EXPECT_THAT(outcome->layers_of_chunk, Each(testing::Ge(0)));
          EXPECT_EQ(*std::max_element(sums.begin(), sums.end()),
                    layers_of_fullest_stage(with_layers(layers), recipe_of(pp, vpp, layout)));
        }
      }
    }
  }
  EXPECT_GT(legal, 100);
}

TEST(StageLayout, TooManyStagesIsAProblemNotACrash) { EXPECT_THAT(refused(100000, 1000, 1, "even").message, HasSubstr("256")); }

}  // namespace
}  // namespace cpfit
