// cpfit topology show and place: the hops of a recipe, what crosses rails, and the placement that avoids it.
#include <gmock/gmock.h>

#include <sstream>

#include "tests/cli/child.h"

namespace cpfit::cli_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

std::size_t widest(const std::string& text) {
  std::istringstream lines(text);
  std::size_t width = 0;
  for (std::string line; std::getline(lines, line);) width = std::max(width, line.size());
  return width;
}

TEST(CliTopologyShow, PricesTheRingAndTheRails) {
  const json shown = cpfit_json({"topology", "show", "dgx-h100", "--nodes", "2", "--tp", "2"});
  // What was there before placements: stride and size of the ring, a hop per member, the warning.
  EXPECT_EQ(shown["ring"]["stride"], 2);
  EXPECT_EQ(shown["ring"]["size"], 8);
  ASSERT_EQ(shown["ring"]["hops"].size(), 8u);
  EXPECT_EQ(shown["ring"]["hops"][3]["from_rank"], 6);
  EXPECT_EQ(shown["ring"]["hops"][3]["bytes_per_second"], 50e9);
  EXPECT_TRUE(shown["ring"]["hops"][3]["crosses_node"]);
  EXPECT_THAT(shown["warning"].get<std::string>(), HasSubstr("n0.nic6 -> leaf6 at 50 GB/s"));
  // One flow alone inside a node, and between nodes on one rail and on two: two leaf-to-spine links of 200 ns.
  EXPECT_EQ(shown["pairs"]["bytes_per_second"][0][1], 450e9);
  EXPECT_TRUE(shown["pairs"]["bytes_per_second"][0][0].is_null());
  ASSERT_EQ(shown["between_nodes"].size(), 2u);
  EXPECT_NEAR(
      shown["between_nodes"][1]["latency_seconds"].get<double>() - shown["between_nodes"][0]["latency_seconds"].get<double>(),
      400e-9, 1e-12);
  EXPECT_EQ(shown["groups"]["tp"]["collective_bytes_per_second"], 450e9);
  EXPECT_EQ(shown["groups"]["cp"]["domains"], 2);
  // 2 rings, each leaves twice: 4 of 16 hops.
  EXPECT_THAT(shown["rails"].get<std::string>(), HasSubstr("4 of 16 hops cross rails"));
  EXPECT_TRUE(shown["placement"]["better"]);
  EXPECT_EQ(shown["placement"]["before"]["hops"]["cross_rail"], 4);
  EXPECT_EQ(shown["placement"]["after"]["hops"]["cross_rail"], 0);
}

TEST(CliTopologyShow, TpThatFillsTheNodeStaysOnItsRails) {
  const json shown = cpfit_json({"topology", "show", "dgx-h100", "--nodes", "2", "--recipe", "tp=8,cp=2"});
  EXPECT_EQ(shown["ring"]["stride"], 8);
  EXPECT_THAT(shown["rails"].get<std::string>(), HasSubstr("tp=8 fills the node"));
  EXPECT_FALSE(shown["placement"]["better"]);
  // A ring inside a node crosses nothing: neither rails nor a warning.
  const json inside = cpfit_json({"topology", "show", "dgx-h100", "--nodes", "2", "--cp", "8"});
  EXPECT_TRUE(inside["rails"].is_null());
  EXPECT_TRUE(inside["warning"].is_null());
}

TEST(CliTopologyShow, WarnsOfAHopThatAnotherPlacementAvoids) {
  // DGX-1 in the order of the numbers has hops of one NVLink (25 GB/s); a ring of double links exists.
  const Said said = cpfit({"topology", "show", "dgx1-v100"});
  EXPECT_EQ(said.exit_code, 0) << said.err;
  EXPECT_THAT(said.out, HasSubstr("warning:"));
  EXPECT_THAT(said.out, HasSubstr("25 GB/s"));
  EXPECT_THAT(said.out, HasSubstr("GPUs 0,3,2,1,5,6,7,4"));
  EXPECT_LE(widest(said.out), 100u);
  EXPECT_LE(widest(cpfit({"topology", "show", "mi300x-8way", "--nodes", "2"}).out), 100u);
  EXPECT_LE(widest(cpfit({"topology", "show", "gb200-nvl72", "--nodes", "36", "--recipe", "tp=2,cp=64"}).out), 100u);
}

TEST(CliTopologyPlace, GivesBytesAndTimePerLinkBeforeAndAfter) {
  const json placed = cpfit_json({"topology", "place", "dgx-h100", "--nodes", "2", "--recipe", "tp=1,cp=16"});
  EXPECT_TRUE(placed["better"]);
  EXPECT_EQ(placed["sequence_tokens"], 131072);
  EXPECT_EQ(placed["before"]["hops"]["leaving_node"], 2);
  EXPECT_EQ(placed["before"]["hops"]["cross_rail"], 2);
  EXPECT_EQ(placed["after"]["hops"]["cross_rail"], 0);
  EXPECT_GT(placed["before"]["link_classes"]["spine"]["bytes"].get<double>(), 0.0);
  EXPECT_FALSE(placed["after"]["link_classes"].contains("spine"));
  EXPECT_EQ(placed["after"]["placement"]["gpu_orders"][1], json({7, 6, 5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(placed["devices"][1], "CUDA_VISIBLE_DEVICES=7,6,5,4,3,2,1,0 on node 1");
  for (const char* side : {"before", "after"}) {
    const json& price = placed[side];
    double sum = 0;
    for (const char* axis : {"cp", "tp", "pp", "dp"}) sum += price["seconds_per_layer"][axis].get<double>();
    EXPECT_NEAR(price["seconds_per_layer"]["total"].get<double>(), sum, 1e-12);
    for (const json& link : price["links"]) EXPECT_GT(link["bytes"].get<double>(), 0.0);
  }
}

TEST(CliTopologyPlace, SaysSoWhenNothingIsBetter) {
  const Said said = cpfit({"topology", "place", "pcie-8gpu-l40s", "--recipe", "cp=8", "--model", "llama2-7b", "--seq", "32k"});
  EXPECT_EQ(said.exit_code, 0) << said.err;
  EXPECT_THAT(said.out, HasSubstr("best: the same"));
  EXPECT_THAT(said.out, HasSubstr("None of the"));
  EXPECT_THAT(said.out, Not(HasSubstr("CUDA_VISIBLE_DEVICES")));
  EXPECT_LE(widest(said.out), 100u);
}

TEST(CliTopologyPlace, RefusesWhatCannotBePlaced) {
  const auto refused = [](const Words& words, const std::string& what) {
    SCOPED_TRACE(testing::PrintToString(words));
    const Said said = cpfit(words);
    EXPECT_EQ(said.exit_code, 2);
    EXPECT_THAT(said.err, HasSubstr(what));
    EXPECT_EQ(said.out, "");
  };
  refused({"topology", "place", "dgx-h100"}, "--recipe is required");
  refused({"topology", "place", "dgx-h100", "--recipe", "cp=16"}, "16 ranks do not fit 8 GPUs");
  refused({"topology", "place", "dgx-h100", "--recipe", "cp=3"}, "131072 % 6 = 2");
  refused({"topology", "place", "dgx-h100", "--recipe", "cpp=8"}, "did you mean 'cp'?");
  refused({"topology", "place", "dgx-h100", "--recipe", "cp=8", "--model", "llama9"}, "--model");
  refused({"topology", "place", "dgx-h100", "--recipe", "cp=8", "--seq", "0"}, "--seq");
  refused({"topology", "place", "dgx-h100", "--nodes", "1024", "--recipe", "tp=8,cp=8,dp=128"}, "up to 4096");
  refused({"topology", "show", "dgx-h100", "--recipe", "cp=8", "--cp", "8"}, "excludes");
}

}  // namespace
}  // namespace cpfit::cli_test
