// Placements: what they cost, and which one is best, on clusters small enough to work out by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "model/cluster/device_order.h"
#include "model/cluster/import/import.h"
#include "model/cluster/ring_order.h"
#include "model/quantity/text.h"
#include "sim/plan/link_loads.h"
#include "sim/plan/placement_search.h"
#include "sim/plan/placement_text.h"
#include "sim/plan/plan.h"
#include "sim/plan/step_timeline.h"
#include "sim/plan/workbench.h"
#include "tests/shared_folder.h"
#include "tests/sim/fixture.h"

namespace cpfit {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A study of Llama 3 8B at 128k on any cluster.
class Study {
 public:
  Study(Cluster cluster, const std::string& recipe, std::int64_t batch = 1) : rates_(RateSet::defaults()) {
    Scenario scenario = test::llama_on_dgx(1, 131072, batch);
    scenario.cluster = std::move(cluster);
    recipe_ = parse_recipe(recipe, scenario.base).value();
    bench_.emplace(Workbench::build(scenario, rates_).value());
  }
  Study(const char* preset, std::int64_t nodes, const std::string& recipe, std::int64_t batch = 1)
      : Study(build_cluster(preset, nodes).value(), recipe, batch) {}

  [[nodiscard]] ScreenContext context() const { return bench_->context(bench_->scenario().training); }
  [[nodiscard]] const Recipe& recipe() const { return recipe_; }
  [[nodiscard]] PlacementPrice price() const { return price_placement(context(), recipe_, default_placement(recipe_)); }
  /// The busiest link of the timeline, bytes per step.
  [[nodiscard]] double simulated_bytes() {
    return step_timeline(*bench_, bench_->scenario().training, recipe_, {}).value().links.front().bytes.value();
  }
  [[nodiscard]] PlacementAdvice advice() const { return optimise_placement(context(), recipe_); }

 private:
  RateSet rates_;
  Recipe recipe_;
  std::optional<Workbench> bench_;
};

double spine_bytes(const std::vector<LinkLoad>& links) {
  double sum = 0;
  for (const LinkLoad& link : links) {
    if (link.from.starts_with("leaf") && link.to.starts_with("spine")) sum += link.bytes.value();
  }
  return sum;
}

TEST(Placement, DefaultRingCrossesRailsAtTheBorders) {
  const Study study("dgx-h100", 2, "tp=1,cp=16,dp=1,pp=1");
  const PlacementPrice price = study.price();
  // 16 hops, 7 -> 8 and 15 -> 0 leave their node, on GPU 7 and into GPU 0: from rail 7 to rail 0.
  EXPECT_EQ(price.counts.rings, 1);
  EXPECT_EQ(price.counts.hops, 16);
  EXPECT_EQ(price.counts.leaving, 2);
  EXPECT_EQ(price.counts.cross_rail, 2);
  EXPECT_EQ(price.counts.slowest, 2);
  EXPECT_EQ(price.slowest.from_gpu, 7);
  EXPECT_EQ(price.slowest.to_gpu, 8);
  EXPECT_DOUBLE_EQ(price.slowest.network.rate.value(), 50e9);
  EXPECT_TRUE(price.slowest.route.crosses_rail);
  // 131072 / 16 tokens, 8 heads of 128, K and V, two bytes: 8192 * 8 * 128 * 2 * 2.
  EXPECT_DOUBLE_EQ(price.kv_message.value(), 8192.0 * 8 * 128 * 2 * 2);
  EXPECT_GT(price.slowest.message.value(), price.kv_message.value() / 50e9);  // never above the raw rate
  EXPECT_EQ(price.tp.value(), 0.0);
  EXPECT_EQ(price.pp.value(), 0.0);
  EXPECT_GT(price.dp.value(), 0.0);  // gradients over cp
  EXPECT_THAT(rail_sentence(study.context(), study.recipe(), price), HasSubstr("2 of 16 hops cross rails: 400 ns more"));
}

TEST(Placement, EverySecondNodeBackwardsKeepsTheRail) {
  for (const std::int64_t nodes : {2, 4}) {
    const Study study("dgx-h100", nodes, "tp=1,dp=1,pp=1,cp=" + std::to_string(8 * nodes));
    const PlacementAdvice advice = study.advice();
    ASSERT_TRUE(advice.better);
    EXPECT_EQ(advice.before.counts.cross_rail, nodes);
    EXPECT_EQ(advice.after.counts.cross_rail, 0);
    EXPECT_EQ(advice.after.counts.leaving, nodes);  // leaving on GPU 7 into GPU 7, on GPU 0 into GPU 0
    ASSERT_EQ(advice.after.placement.gpu_orders.size(), static_cast<std::size_t>(nodes));
    EXPECT_THAT(advice.after.placement.gpu_orders[0], ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
    EXPECT_THAT(advice.after.placement.gpu_orders[1], ElementsAre(7, 6, 5, 4, 3, 2, 1, 0));
    EXPECT_EQ(advice.after.ring[7].from_gpu, 7);
    EXPECT_EQ(advice.after.ring[7].to_gpu, 15);
    EXPECT_GT(spine_bytes(advice.links_before), 0.0);
    EXPECT_EQ(spine_bytes(advice.links_after), 0.0);
    EXPECT_LE(advice.after.total(), advice.before.total());
    EXPECT_THAT(advice.sentence, HasSubstr("every second node backwards"));
    EXPECT_THAT(rail_sentence(study.context(), study.recipe(), advice.after), HasSubstr("stay on their rail"));
  }
}

TEST(Placement, LanesOfTpTurnTogether) {
  // tp=2: a node holds four ring members of two lanes; blocks of two GPUs are turned, lanes inside stay: 6,7 4,5 2,3 0,1.
  const Study study("dgx-h100", 4, "tp=2,cp=16,dp=1,pp=1");
  const PlacementPrice before = study.price();
  EXPECT_EQ(before.counts.rings, 2);
  EXPECT_EQ(before.counts.hops, 32);
  EXPECT_EQ(before.counts.leaving, 8);  // 4 borders, 2 lanes
  EXPECT_EQ(before.counts.cross_rail, 8);
  const auto orders = turned_orders({0, 1, 2, 3, 4, 5, 6, 7}, 2, 16);
  ASSERT_EQ(orders.size(), 4u);
  EXPECT_THAT(orders[1], ElementsAre(6, 7, 4, 5, 2, 3, 0, 1));
  EXPECT_EQ(orders[0], orders[2]);
  const PlacementAdvice advice = study.advice();
  EXPECT_EQ(advice.after.counts.cross_rail, 0);
  EXPECT_DOUBLE_EQ(advice.after.tp.value(), before.tp.value());  // tp stays on NVLink
}

TEST(Placement, OddRingsOfNodesCloseOverAThirdRail) {
  // Three nodes: enter 0 leave 7, enter 7 leave 4, enter 4 leave 0. Every border keeps its GPU number.
  const auto orders = turned_orders({0, 1, 2, 3, 4, 5, 6, 7}, 1, 24);
  ASSERT_EQ(orders.size(), 3u);
  for (std::size_t n = 0; n < 3; ++n) {
    EXPECT_EQ(orders[n].back(), orders[(n + 1) % 3].front());
    std::vector<std::int32_t> sorted = orders[n];
    std::sort(sorted.begin(), sorted.end());
    EXPECT_THAT(sorted, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  }
  const Study study("dgx-h100", 3, "tp=1,cp=24,dp=1,pp=1");
  EXPECT_EQ(study.advice().after.counts.cross_rail, 0);
}

TEST(Placement, TpThatFillsTheNodeKeepsEveryLaneOnItsRail) {
  const Study study("dgx-h100", 4, "tp=8,cp=4,dp=1,pp=1");
  const PlacementAdvice advice = study.advice();
  EXPECT_EQ(advice.before.counts.hops, 32);     // 8 rings of 4
  EXPECT_EQ(advice.before.counts.leaving, 32);  // each to the same GPU of the next node
  EXPECT_EQ(advice.before.counts.cross_rail, 0);
  EXPECT_FALSE(advice.better);  // cp inside the node would put tp on the NICs
  EXPECT_EQ(advice.after.placement, default_placement(study.recipe()));
  EXPECT_TRUE(turned_orders({0, 1, 2, 3, 4, 5, 6, 7}, 8, 4).empty());
  EXPECT_THAT(rail_sentence(study.context(), study.recipe(), advice.before), HasSubstr("tp=8 fills the node"));
}

TEST(Placement, RingInsideANodeStaysAsItIs) {
  const Study study("dgx-h100", 2, "tp=2,cp=4,dp=2,pp=1", 2);
  const PlacementAdvice advice = study.advice();
  EXPECT_EQ(advice.before.counts.leaving, 0);
  EXPECT_FALSE(advice.better) << advice.sentence;
  EXPECT_EQ(advice.links_before, advice.links_after);
  EXPECT_TRUE(rail_sentence(study.context(), study.recipe(), advice.before).empty());
}

TEST(Placement, RankOrderThatTearsTheRingApartIsMended) {
  // dp before cp: ring members stand 8 apart, every hop leaves its node. cp first keeps them on NVLink, dp then crosses.
  const Study study("dgx-h100", 2, "tp=1,cp=2,dp=8,pp=1,rank_order=tp-dp-cp-pp", 8);
  const PlacementAdvice advice = study.advice();
  EXPECT_EQ(advice.before.counts.leaving, 16);
  ASSERT_TRUE(advice.better);
  EXPECT_EQ(advice.after.counts.leaving, 0);
  EXPECT_EQ(to_text(advice.after.placement.rank_order).substr(0, 2), "cp");
  EXPECT_LT(advice.after.cp, advice.before.cp);
}

TEST(Placement, LinkLoadsAreThoseOfTheRecipeAsItStands) {
  const Study study("dgx-h100", 2, "tp=2,cp=8,dp=1,pp=1");
  EXPECT_EQ(placed_links(study.context(), study.recipe(), default_placement(study.recipe()), 1000),
            link_loads(study.context(), study.recipe(), 1000));
}

/// Two sockets whose GPUs are numbered in turns: even ones on socket 0. In the order of the numbers every hop would cross.
/// Llama 3 8B at 128k on a ring of 8: KV of a rank are 2 * 16384 tokens * 8 heads * 128 * 2 bytes = 64 MiB, sent over 7 hops by
/// each of 32 layers: 14 GiB forward. Selective and full recompute run the forward ring once more.
TEST(Placement, WhatIsComputedAgainIsSentAgain) {
  const auto most = [](const char* recipe) {
    const Study study("dgx-h100", 1, recipe);
    return link_loads(study.context(), study.recipe(), 1).front().bytes.value();
  };
  const double none = most("tp=1,cp=8,dp=1,pp=1"), again = 14.0 * 1073741824.0;
  EXPECT_NEAR(most("tp=1,cp=8,dp=1,pp=1,recompute=selective") - none, again, 1.0);
  EXPECT_NEAR(most("tp=1,cp=8,dp=1,pp=1,recompute=full") - none, again, 1.0);
  EXPECT_NEAR(most("tp=1,cp=8,dp=1,pp=1,recompute=block-8") - none, again / 4, 1.0);
  // tp 8: four collectives of T*H*2 = 1 GiB, 7/8 each, more per layer that runs again.
  const double layers = 4.0 * 1073741824.0 * 7 / 8 * 32;
  EXPECT_NEAR(most("tp=8,cp=1,dp=1,pp=1,recompute=full") - most("tp=8,cp=1,dp=1,pp=1"), layers, 1.0);
  EXPECT_EQ(most("tp=8,cp=1,dp=1,pp=1,recompute=selective"), most("tp=8,cp=1,dp=1,pp=1"));
}

/// 8.03e9 parameters over 8 ranks: FSDP2 gathers them in 2 bytes for forward and, but for the 1.05e9 beside the layers, again for
/// backward, and reduces their gradients in 4, in every micro-batch, 7/8 of it on a rank's link; ZeRO-1 reduces 4 and gathers 2
/// bytes once a step.
TEST(Placement, ShardedWeightsTravelInEveryMicroBatch) {
  const auto per_parameter = [](const char* recipe, std::int64_t batch) {
    const Study study("dgx-h100", 1, recipe, batch);
    return link_loads(study.context(), study.recipe(), 1).front().bytes.value() / 8.03e9 / (7.0 / 8.0);
  };
  const char* zero3 = "tp=1,cp=1,dp=8,pp=1,state_sharding=zero3,framework=torchtitan";
  const double each = 8.0 - 2.0 * 1.0507 / 8.03;
  EXPECT_NEAR(per_parameter(zero3, 8), each, 0.02);
  EXPECT_NEAR(per_parameter(zero3, 24), 3 * each, 0.06);
  EXPECT_NEAR(per_parameter("tp=1,cp=1,dp=8,pp=1", 8), 6.0, 0.02);
  EXPECT_NEAR(per_parameter("tp=1,cp=1,dp=8,pp=1", 24), 6.0, 0.02);
}

/// Both count what the messages hold: collectives that beat a link's rate (sums in the switch) too. The timeline's are a little
/// more where it has the collectives of embedding and head, and less where a ring's last hop or the last layer's gather falls
/// away.
TEST(Placement, TheTimelinesLinksCarryWhatTheClosedFormSays) {
  for (const char* recipe : {"tp=8,cp=1,dp=1,pp=1", "tp=8,cp=1,dp=1,pp=1,recompute=full", "tp=1,cp=8,dp=1,pp=1",
                             "tp=1,cp=8,dp=1,pp=1,recompute=full", "tp=1,cp=1,dp=8,pp=1"}) {
    Study study("dgx-h100", 1, recipe, 8);
    const double screen = link_loads(study.context(), study.recipe(), 1).front().bytes.value();
    EXPECT_NEAR(study.simulated_bytes() / screen, 1.0, 0.02) << recipe;
  }
}

TEST(Placement, PcieRingCrossesTheSocketsOnceEachWay) {
  const Study straight("pcie-8gpu-l40s", 1, "tp=1,cp=8,dp=1,pp=1");
  const PlacementPrice price = straight.price();
  EXPECT_EQ(price.counts.cross_socket, 2);  // 3 -> 4 and 7 -> 0
  EXPECT_FALSE(straight.advice().better);
  // The worst order first: a placement in turns over the sockets, then what the search makes of it.
  Placement turns = default_placement(straight.recipe());
  turns.gpu_orders = {{0, 4, 1, 5, 2, 6, 3, 7}};
  const PlacementPrice worse = price_placement(straight.context(), straight.recipe(), turns);
  EXPECT_EQ(worse.counts.cross_socket, 8);
  EXPECT_GT(worse.cp, price.cp);
  const std::vector<std::int64_t> gpus{0, 4, 1, 5, 2, 6, 3, 7};
  const Cluster cluster = build_cluster("pcie-8gpu-l40s", 1).value();
  const RingOrder ring = order_ring(*cluster.topology, gpus);
  EXPECT_TRUE(ring.exact);
  int crossings = 0;
  for (std::size_t i = 0; i < 8; ++i)
    crossings += flow_route(*cluster.topology, ring.members[i], ring.members[(i + 1) % 8]).crosses_socket ? 1 : 0;
  EXPECT_EQ(crossings, 2);
  EXPECT_DOUBLE_EQ(ring.slowest.value(), price.slowest.network.rate.value());
  // In turns each direction of the socket link carries four hops.
  EXPECT_LT(judge_ring_order(*cluster.topology, gpus).slowest, ring.slowest);
}

TEST(Placement, BridgedPairsBecomeNeighbours) {
  // Bridges join 0-1 and 2-3. With dp before tp, tp pairs would be 0-2 and 1-3 over PCIe: the search puts them on bridges.
  const Study study("a100-pcie-4gpu-bridge", 1, "tp=2,cp=1,dp=2,pp=1,rank_order=dp-tp-cp-pp", 2);
  const PlacementAdvice advice = study.advice();
  ASSERT_TRUE(advice.better);
  Recipe placed = study.recipe();
  const auto pairs = placed_groups(study.context().cluster, placed, advice.after.placement, std::vector{Axis::kTp});
  ASSERT_EQ(pairs.size(), 2u);
  for (const auto& pair : pairs) EXPECT_EQ(pair[0] / 2, pair[1] / 2);
  EXPECT_LT(advice.after.tp, advice.before.tp);
  // A ring of all four: bridges are used by two of its hops, each neighbour of the ring is a pair or a step between pairs.
  const Cluster cluster = build_cluster("a100-pcie-4gpu-bridge", 1).value();
  const std::vector<std::int64_t> crossed{0, 2, 1, 3};
  const RingOrder ring = order_ring(*cluster.topology, crossed);
  int bridged = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    bridged += flow_route(*cluster.topology, ring.members[i], ring.members[(i + 1) % 4]).narrowest == LinkClass::kNvlink ? 1 : 0;
  }
  EXPECT_EQ(bridged, 2);
}

TEST(Placement, CubeMeshRingAvoidsThinAndRelayedHops) {
  // DGX-1: some neighbours in the order of the numbers have no direct link or one link of the two; a ring of double links exists
  // (0 3 2 1 5 6 7 4: the NCCL ring of the machine), so the slowest hop is 2 links of 25 GB/s.
  const Cluster cluster = build_cluster("dgx1-v100", 1).value();
  const std::vector<std::int64_t> gpus{0, 1, 2, 3, 4, 5, 6, 7};
  const RingOrder given = judge_ring_order(*cluster.topology, gpus), best = order_ring(*cluster.topology, gpus);
  EXPECT_LT(given.slowest.value(), 50e9);
  EXPECT_DOUBLE_EQ(best.slowest.value(), 50e9);
  const Study study("dgx1-v100", 1, "tp=1,cp=8,dp=1,pp=1");
  const PlacementAdvice advice = study.advice();
  ASSERT_TRUE(advice.better);
  EXPECT_DOUBLE_EQ(advice.after.slowest.network.rate.value(), 50e9);
}

/// What a placement gains must be what a cluster ordered that way has.
TEST(Placement, AnOrderedClusterHasThePriceThatWasPromised) {
  for (const auto& [preset, nodes, recipe] :
       {std::tuple{"dgx1-v100", 1, "tp=1,cp=8,dp=1,pp=1"}, {"dgx-h100", 4, "tp=2,cp=16,dp=1,pp=1"}}) {
    SCOPED_TRACE(preset);
    const Study study(preset, nodes, recipe);
    const PlacementAdvice advice = study.advice();
    ASSERT_TRUE(advice.better);
    const Cluster numbered = build_cluster(preset, nodes).value();
    const Cluster ordered = with_device_orders(numbered, device_orders(numbered, advice.after.placement)).value();
    const Study there(ordered, recipe);
    EXPECT_DOUBLE_EQ(there.price().total().value(), advice.after.total().value());
    EXPECT_EQ(there.price().counts.cross_rail, advice.after.counts.cross_rail);
    EXPECT_FALSE(there.advice().better);
    // Placed anew from there, the orders are those of the hardware's own numbers again.
    Placement back = default_placement(there.recipe());
    EXPECT_EQ(device_orders(ordered, back), ordered.device_orders);
  }
}

/// Llama 3.2 1B at 28k on a cube mesh of A100: the ring in the order of the numbers is not hidden, that of double links is. The
/// mesh is a DGX-1's, whose own V100 have no kernels for a ring.
TEST(Placement, APlanNamesTheOrderThatMakesARecipeFeasible) {
  const std::string head =
      "model = \"llama-3.2-1b\"\n[training]\nsequence_length = \"28k\"\nglobal_batch = 4\nprecision = \"fp16\"\n"
      "[search]\ntp = 1\ncp = 8\ncp_comm = \"p2p\"\n[recipe]\nrecompute = \"full\"\n"
      "[requirements]\nexposed_budget = \"15 %\"\n";  // 23 % as numbered, 11 % where hops have two links
  const RateSet rates = RateSet::defaults();
  const auto planned = [&](const std::string& order) {
    Scenario scenario = read_scenario(head + "[cluster]\npreset = \"dgx1-v100\"\n" + order, "cube.toml").value();
    scenario.cluster.gpu = find_gpu("a100-80gb").value();
    return plan(scenario, rates, {}).value();
  };
  const PlanResult before = planned("");
  EXPECT_FALSE(before.ships);
  ASSERT_FALSE(before.levers.empty());
  EXPECT_EQ(before.levers.front().change, "device_order=\"0,3,2,1,5,6,7,4\"");
  EXPECT_THAT(before.levers.front().gains, HasSubstr("becomes feasible"));
  const PlanResult after = planned("device_order = \"0,3,2,1,5,6,7,4\"\n");
  ASSERT_TRUE(after.ships);
  EXPECT_THAT(before.levers.front().gains, HasSubstr("take " + print_time(after.ship.time.step()) + " per step"));
  for (const Lever& lever : after.levers) EXPECT_THAT(lever.change, testing::Not(HasSubstr("device_order")));
}

TEST(Placement, LargeRingsAreImprovedNotProved) {
  const Cluster cluster = build_cluster("dgx-h100", 2).value();
  std::vector<std::int64_t> gpus;
  for (std::int64_t i = 0; i < 8; ++i) gpus.insert(gpus.end(), {i, i + 8});  // in turns over the nodes: every hop leaves
  const RingOrder ring = order_ring(*cluster.topology, gpus);
  EXPECT_FALSE(ring.exact);
  EXPECT_EQ(ring.slowest_hops, 2);  // once there, once back
}

TEST(Placement, ImportedBoxesAreOrdered) {
  CPFIT_REQUIRE_SHARED("reference/hardware/samples/nccl_topo/14_rccl_mi250x_8p_90a.xml");
  const ImportedCluster made =
      load_any_topology(test::shared_path("reference/hardware/samples/nccl_topo/14_rccl_mi250x_8p_90a.xml"), {}).value();
  const std::vector<std::int64_t> gpus{0, 1, 2, 3, 4, 5, 6, 7};
  const RingOrder given = judge_ring_order(*made.cluster.topology, gpus), best = order_ring(*made.cluster.topology, gpus);
  EXPECT_TRUE(best.exact);
  EXPECT_GE(best.slowest, given.slowest);
  const Study study(made.cluster, "tp=1,cp=8,dp=1,pp=1");
  const PlacementAdvice advice = study.advice();
  EXPECT_DOUBLE_EQ(advice.after.slowest.network.rate.value(), best.slowest.value());
  // Eight GCDs in the order of their numbers pass over a third one four times; a ring of direct links exists (0 1 3 2 4 5 7 6).
  const auto relayed = [](const PlacementPrice& price) {
    return std::count_if(price.ring.begin(), price.ring.end(), [](const PlacedHop& hop) { return hop.route.relays > 0; });
  };
  EXPECT_EQ(relayed(advice.before), 4);
  EXPECT_EQ(relayed(advice.after), 0);
}

TEST(Placement, IsTheSameEveryTime) {
  const Study study("dgx1-v100", 2, "tp=2,cp=8,dp=1,pp=1");
  const PlacementAdvice a = study.advice(), b = study.advice();
  EXPECT_EQ(a.after.placement, b.after.placement);
  EXPECT_EQ(a.sentence, b.sentence);
  EXPECT_FALSE(cheaper(a.before, a.after));
}

}  // namespace
}  // namespace cpfit
