#include "model/recipe/rank_grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

namespace cpfit {
namespace {

using testing::ElementsAre;

Recipe grid(std::int32_t tp, std::int32_t cp, std::int32_t dp, std::int32_t pp, const std::string& order = "tp-cp-dp-pp") {
  Recipe recipe;
  recipe.tp = tp;
  recipe.cp = cp;
  recipe.dp = dp;
  recipe.pp = pp;
  recipe.rank_order = parse_rank_order(order).value();
  return recipe;
}

TEST(RankGrid, SixteenRanksOfMegatron) {
  // cp_model.md D.4: tp [0,1].., cp [0,2],[1,3],[4,6].., dp [0,4],[1,5].., pp [0,8],[1,9]..
  const Recipe recipe = grid(2, 2, 2, 2);
  const auto tp = process_groups(recipe, Axis::kTp);
  ASSERT_EQ(tp.size(), 8u);
  EXPECT_THAT(tp[0], ElementsAre(0, 1));
  EXPECT_THAT(tp[7], ElementsAre(14, 15));
  const auto cp = process_groups(recipe, Axis::kCp);
  EXPECT_THAT(cp, ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3), ElementsAre(4, 6), ElementsAre(5, 7), ElementsAre(8, 10),
                              ElementsAre(9, 11), ElementsAre(12, 14), ElementsAre(13, 15)));
  const auto dp = process_groups(recipe, Axis::kDp);
  EXPECT_THAT(dp, ElementsAre(ElementsAre(0, 4), ElementsAre(1, 5), ElementsAre(2, 6), ElementsAre(3, 7), ElementsAre(8, 12),
                              ElementsAre(9, 13), ElementsAre(10, 14), ElementsAre(11, 15)));
  const auto pp = process_groups(recipe, Axis::kPp);
  ASSERT_EQ(pp.size(), 8u);
  EXPECT_THAT(pp[0], ElementsAre(0, 8));
  EXPECT_THAT(pp[1], ElementsAre(1, 9));
  EXPECT_EQ(group_shape(recipe, Axis::kPp), (GroupShape{8, 2}));
}

TEST(RankGrid, StateShardingGroupsOfMegatron) {
  // cp and dp together: stride 2 (tp), 4 members, inside one half of the ranks per pipeline stage.
  const Axis axes[] = {Axis::kCp, Axis::kDp};
  EXPECT_THAT(process_groups(grid(2, 2, 2, 2), axes), ElementsAre(ElementsAre(0, 2, 4, 6), ElementsAre(1, 3, 5, 7),
                                                                  ElementsAre(8, 10, 12, 14), ElementsAre(9, 11, 13, 15)));
}

TEST(RankGrid, Llama3PutsDpOutermost) {
  // [TP, CP, PP, DP]: pp strides tp*cp = 128, dp tp*cp*pp = 2048 on 16,384 GPUs.
  const Recipe recipe = grid(8, 16, 8, 16, "tp-cp-pp-dp");
  EXPECT_EQ(group_shape(recipe, Axis::kTp), (GroupShape{1, 8}));
  EXPECT_EQ(group_shape(recipe, Axis::kCp), (GroupShape{8, 16}));
  EXPECT_EQ(group_shape(recipe, Axis::kPp), (GroupShape{128, 16}));
  EXPECT_EQ(group_shape(recipe, Axis::kDp), (GroupShape{2048, 8}));
  // Megatron's order for the same recipe swaps the two: dp 128, pp 1024.
  EXPECT_EQ(group_shape(grid(8, 16, 8, 16), Axis::kDp), (GroupShape{128, 8}));
  EXPECT_EQ(group_shape(grid(8, 16, 8, 16), Axis::kPp), (GroupShape{1024, 16}));
}

TEST(RankGrid, HierarchicalLevelsOfACpGroup) {
  Recipe recipe = grid(2, 8, 1, 1);
  recipe.cp_comm = CpComm::kA2aP2p;
  recipe.a2a_degree = 4;
  // The a2a level is the contiguous block of the CP list (stride tp), the ring strides over it.
  EXPECT_EQ(cp_inner_shape(recipe), (GroupShape{2, 4}));
  EXPECT_EQ(cp_outer_shape(recipe), (GroupShape{8, 2}));
  recipe.cp_comm = CpComm::kA2a;
  recipe.a2a_degree = 8;
  EXPECT_EQ(cp_inner_shape(recipe), (GroupShape{2, 8}));
  EXPECT_EQ(cp_outer_shape(recipe).size, 1);
  recipe.cp_comm = CpComm::kP2p;
  EXPECT_EQ(cp_outer_shape(recipe), (GroupShape{2, 8}));
  recipe.cp_comm = CpComm::kDoubleRing;
  recipe.window = 2;
  EXPECT_EQ(cp_inner_shape(recipe), (GroupShape{2, 2}));
  EXPECT_EQ(cp_outer_shape(recipe), (GroupShape{4, 4}));
}

TEST(RankGrid, EveryOrderIsABijectionWhoseGroupsPartitionTheRanks) {
  std::array<Axis, 4> axes = {Axis::kTp, Axis::kCp, Axis::kDp, Axis::kPp};
  std::sort(axes.begin(), axes.end());
  int orders = 0;
  do {
    ++orders;
    Recipe recipe = grid(2, 3, 4, 5);  // different sizes, so that a swapped axis shows
    std::copy(axes.begin(), axes.end(), recipe.rank_order.axes);
    for (std::int64_t rank = 0; rank < recipe.world(); ++rank) {
      const Coordinate at = coordinate_of(recipe, rank);
      ASSERT_EQ(rank_of(recipe, at), rank);
      ASSERT_LT(at.tp, 2);
      ASSERT_LT(at.cp, 3);
      ASSERT_LT(at.dp, 4);
      ASSERT_LT(at.pp, 5);
    }
    for (const Axis axis : axes) {
      const GroupShape shape = group_shape(recipe, axis);
      std::set<std::int64_t> seen;
      for (const auto& group : process_groups(recipe, axis)) {
        ASSERT_EQ(static_cast<std::int64_t>(group.size()), shape.size);
        for (std::size_t i = 0; i < group.size(); ++i) {
          EXPECT_EQ(group[i], group[0] + static_cast<std::int64_t>(i) * shape.stride);
          EXPECT_TRUE(seen.insert(group[i]).second);
        }
      }
      EXPECT_EQ(static_cast<std::int64_t>(seen.size()), recipe.world());
    }
  } while (std::next_permutation(axes.begin(), axes.end()));
  EXPECT_EQ(orders, 24);
}

TEST(RankGridDeath, ARankOutsideTheWorldIsOurMistake) {
  EXPECT_DEATH((void)coordinate_of(grid(2, 2, 1, 1), 4), "rank 4 is outside a world of 4");
}

}  // namespace
}  // namespace cpfit
