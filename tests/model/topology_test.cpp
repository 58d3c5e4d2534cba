// Routes follow the written rule of topology.h, on presets and on small graphs made to be ambiguous.
#include <gmock/gmock.h>

#include <algorithm>

#include "model/cluster/cluster.h"
#include "model/cluster/cluster_spec.h"
#include "model/cluster/device_order.h"
#include "model/cluster/topology.h"
#include "model/cluster/topology_build.h"
#include "model/cluster/topology_check.h"
#include "model/cluster/topology_file.h"

namespace cpfit {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> names(const Topology& topology, std::int64_t a, std::int64_t b) {
  std::vector<std::string> out;
  for (const std::int32_t link : topology.route(a, b)) {
    const Link& hop = topology.links()[static_cast<std::size_t>(link)];
    if (out.empty()) out.push_back(topology.vertices()[static_cast<std::size_t>(hop.from)].name);
    EXPECT_EQ(out.back(), topology.vertices()[static_cast<std::size_t>(hop.from)].name) << "links of a route must join";
    out.push_back(topology.vertices()[static_cast<std::size_t>(hop.to)].name);
  }
  return out;
}

TEST(Routes, NvlinkInsideTheHost) {
  const Cluster cluster = build_cluster("dgx-h100", 1).value();
  EXPECT_THAT(names(*cluster.topology, 0, 5), ElementsAre("n0.gpu0", "n0.nvsw0", "n0.gpu5"));
  EXPECT_THAT(names(*cluster.topology, 3, 3), IsEmpty());
}

TEST(Routes, SameRailStaysOnTheLeaf) {
  const Cluster cluster = build_cluster("dgx-h100", 2).value();
  EXPECT_THAT(names(*cluster.topology, 3, 11),
              ElementsAre("n0.gpu3", "n0.pcie3", "n0.nic3", "leaf3", "n1.nic3", "n1.pcie3", "n1.gpu3"));
}

TEST(Routes, OtherRailAndOtherUnitCrossTheSpine) {
  const Cluster cluster = build_cluster("dgx-h100", 64).value();  // two units of 32: leaves 0..7 and 8..15
  EXPECT_THAT(names(*cluster.topology, 7, 8),
              ElementsAre("n0.gpu7", "n0.pcie7", "n0.nic7", "leaf7", "spine0", "leaf0", "n1.nic0", "n1.pcie0", "n1.gpu0"));
  EXPECT_THAT(names(*cluster.topology, 0, 32 * 8),
              ElementsAre("n0.gpu0", "n0.pcie0", "n0.nic0", "leaf0", "spine0", "leaf8", "n32.nic0", "n32.pcie0", "n32.gpu0"));
}

/// The NICs by which the ways of a pair leave and enter, in order: "n0.nic3 > n1.nic1".
std::vector<std::string> pair_nics(const Topology& topology, std::int64_t a, std::int64_t b) {
  std::vector<std::int32_t> links;
  std::vector<std::size_t> ends;
  topology.pair_routes_into(a, b, links, ends);
  std::vector<std::string> ways;
  for (std::size_t way = 0, link = 0; way < ends.size(); ++way) {
    std::string text;
    for (; link < ends[way]; ++link) {
      const Vertex& to =
          topology.vertices()[static_cast<std::size_t>(topology.links()[static_cast<std::size_t>(links[link])].to)];
      if (to.kind == VertexKind::kNic) text += (text.empty() ? "" : " > ") + to.name;
    }
    ways.push_back(text);
  }
  return ways;
}

TEST(Routes, APairSpreadsOverTheNearNicsThatItsPcieLinkFills) {
  // Four NICs of 12.5 GB/s, two under each socket; a GPU of PCIe 4 takes 24 GB/s: both of its socket, its own first. GPUs 4 to 7
  // take NICs 2, 3, 2, 3 for their own.
  const Cluster sockets = build_cluster("a800-4x100g-sockets", 2).value();
  EXPECT_THAT(pair_nics(*sockets.topology, 7, 8), ElementsAre("n0.nic3 > n1.nic0", "n0.nic2 > n1.nic1"));
  EXPECT_THAT(pair_nics(*sockets.topology, 0, 8), ElementsAre("n0.nic0 > n1.nic0", "n0.nic1 > n1.nic1"));
  EXPECT_THAT(pair_nics(*sockets.topology, 0, 1), ElementsAre(""));  // NVLink
  EXPECT_THAT(pair_nics(*sockets.topology, 3, 3), IsEmpty());
  // Two of 25 GB/s are near here, and one of them fills the link; of 12.5 it takes two, of 6.25 there are no more.
  ClusterSpec spec = find_cluster_spec("dgx-a100").value();
  EXPECT_EQ(pair_nics(*build_cluster(spec, 2).value().topology, 7, 8).size(), 1u);
  spec.nic_rate = BytesPerSecond(12.5e9);
  EXPECT_THAT(pair_nics(*build_cluster(spec, 2).value().topology, 7, 8), ElementsAre("n0.nic7 > n1.nic0", "n0.nic6 > n1.nic1"));
  spec.nic_rate = BytesPerSecond(6.25e9);
  EXPECT_EQ(pair_nics(*build_cluster(spec, 2).value().topology, 7, 8).size(), 2u);
  for (const char* one : {"dgx-h100", "a800-4x100g", "dgx-b300", "aws-p5", "aws-p4d"}) {
    const Cluster cluster = build_cluster(one, 40).value();
    EXPECT_EQ(pair_nics(*cluster.topology, 0, cluster.gpus() - 1).size(), 1u) << one;
  }
  // A Grace CPU has two NICs, and NVLink-C2C takes more than they give.
  const Cluster grace = build_cluster("gb200-nvl72", 36).value();
  EXPECT_EQ(pair_nics(*grace.topology, 0, grace.gpus() - 1).size(), 2u);
}

TEST(Routes, PodsMeetAtTheCore) {
  const Cluster cluster = build_cluster("grand-teton-h100", 385).value();  // pods of 384 hosts, racks of 2
  const std::vector<std::string> route = names(*cluster.topology, 0, 384 * 8);
  EXPECT_THAT(route, ElementsAre("n0.gpu0", "n0.pcie0", "n0.nic0", "leaf0", "spine0", "core0", "spine1", "leaf192", "n384.nic0",
                                 "n384.pcie0", "n384.gpu0"));
}

TEST(Routes, EqualSpinesAreTakenByRailIndex) {
  ClusterSpec spec = find_cluster_spec("dgx-h100").value();
  spec.fabric.spines = 3;
  const Cluster cluster = build_cluster(spec, 2).value();
  for (std::int32_t rail = 0; rail < 8; ++rail) {
    const std::int32_t to = 8 + (rail + 1) % 8;  // another rail on the second host
    EXPECT_EQ(names(*cluster.topology, rail, to).at(4), "spine" + std::to_string(rail % 3));
  }
}

TEST(Routes, CubeMeshRelaysOverNvlinkNotPcie) {
  const Cluster cluster = build_cluster("dgx1-v100", 1).value();
  EXPECT_THAT(names(*cluster.topology, 0, 3), ElementsAre("n0.gpu0", "n0.gpu3"));
  // 0 and 5 share no link. Over 4: 2 and 1 links; over 1: 1 and 2. Both have a bottleneck of one link: the first is kept.
  EXPECT_THAT(names(*cluster.topology, 0, 5), ElementsAre("n0.gpu0", "n0.gpu1", "n0.gpu5"));
  // 0 to 7: over 3 two links then one, over 4 two links then two: the wider one.
  EXPECT_THAT(names(*cluster.topology, 0, 7), ElementsAre("n0.gpu0", "n0.gpu4", "n0.gpu7"));
}

TEST(Routes, BridgedPairsLeaveThePairOverPcieWithoutRelay) {
  const Cluster cluster = build_cluster("a100-pcie-4gpu-bridge", 1).value();
  EXPECT_THAT(names(*cluster.topology, 0, 1), ElementsAre("n0.gpu0", "n0.gpu1"));
  EXPECT_THAT(names(*cluster.topology, 0, 2), ElementsAre("n0.gpu0", "n0.cpu0", "n0.cpu2", "n0.gpu2"));
}

TEST(Routes, EveryGpuTakesItsNearestNic) {
  // Two GPUs and two NICs under each switch: equal distance, so the second GPU takes the NIC not yet served.
  const Cluster a100 = build_cluster("dgx-a100", 2).value();
  for (std::int64_t gpu = 0; gpu < 8; ++gpu) {
    const Vertex& nic = a100.topology->vertices()[static_cast<std::size_t>(a100.topology->nic_of(gpu))];
    EXPECT_EQ(nic.index, gpu);
  }
  // Four NICs for eight GPUs: pairs share.
  const Cluster p4d = build_cluster("aws-p4d", 2).value();
  for (std::int64_t gpu = 0; gpu < 8; ++gpu) {
    EXPECT_EQ(p4d.topology->vertices()[static_cast<std::size_t>(p4d.topology->nic_of(gpu))].index, gpu / 2);
  }
}

TEST(Routes, NvlinkJoinsTraysOfOneRackNotRacks) {
  const Cluster cluster = build_cluster("gb200-nvl72", 36).value();
  EXPECT_THAT(names(*cluster.topology, 0, 71), ElementsAre("n0.gpu0", "domain0.nvsw0", "n17.gpu3"));
  EXPECT_THAT(names(*cluster.topology, 0, 72),
              ElementsAre("n0.gpu0", "n0.cpu0", "n0.nic0", "leaf0", "n18.nic0", "n18.cpu0", "n18.gpu0"));
}

/// One host: two GPUs, two PCIe ways between them of equal length, the second one wider.
TEST(Routes, FewestHopsThenTheWidestWay) {
  std::vector<Vertex> vertices{{"a", VertexKind::kGpu, 0, 0, -1},
                               {"narrow", VertexKind::kPcieSwitch, 0, 0, -1},
                               {"wide", VertexKind::kPcieSwitch, 0, 1, -1},
                               {"b", VertexKind::kGpu, 0, 1, -1}};
  std::vector<Link> links;
  join(links, 0, 1, LinkClass::kPcie, gb_per_s(16), {});
  join(links, 1, 3, LinkClass::kPcie, gb_per_s(64), {});
  join(links, 0, 2, LinkClass::kPcie, gb_per_s(32), {});
  join(links, 2, 3, LinkClass::kPcie, gb_per_s(32), {});
  const Topology topology(vertices, links);
  EXPECT_THAT(names(topology, 0, 1), ElementsAre("a", "wide", "b"));
  EXPECT_THAT(names(topology, 1, 0), ElementsAre("b", "wide", "a"));
}

TEST(Routes, WithoutAWayThereIsNoRoute) {
  std::vector<Vertex> vertices{{"a", VertexKind::kGpu, 0, 0, -1}, {"b", VertexKind::kGpu, 1, 0, -1}};
  const Topology topology(vertices, {});
  EXPECT_THAT(topology.route(0, 1), IsEmpty());
  EXPECT_FALSE(topology.reachable(0, 1));
  EXPECT_TRUE(topology.reachable(0, 0));
}

TEST(Routes, AreTheSameInEveryBuild) {
  const Cluster first = build_cluster("dgx-h100", 40).value(), second = build_cluster("dgx-h100", 40).value();
  for (std::int64_t a = 0; a < 320; a += 7) {
    for (std::int64_t b = 0; b < 320; b += 11) EXPECT_EQ(first.topology->route(a, b), second.topology->route(a, b));
  }
}

TEST(Topology, LargeClustersStayAlike) {
  const Cluster cluster = build_cluster("dgx-h100", 2048).value();  // 16,384 GPUs
  EXPECT_EQ(cluster.topology->gpus().size(), 16384u);
  EXPECT_TRUE(cluster.topology->nodes_alike());
  // 16383 is GPU 7 of the last host: rail 7 of unit 63, leaf 63 * 8 + 7 = 511.
  EXPECT_THAT(names(*cluster.topology, 16383, 0).at(3), "leaf511");
}

TEST(Topology, OneSlowerHostIsNoticed) {
  const Cluster cluster = build_cluster("dgx-h100", 4).value();
  std::vector<Link> links = cluster.topology->links();
  for (Link& link : links) {
    if (link.link_class == LinkClass::kNic && cluster.topology->vertices()[static_cast<std::size_t>(link.from)].name == "n2.nic5")
      link.capacity /= 2;
  }
  EXPECT_FALSE(Topology(cluster.topology->vertices(), links).nodes_alike());
}

TEST(Build, SpineCapacityFollowsOversubscription) {
  ClusterSpec spec = find_cluster_spec("dgx-h100").value();
  spec.fabric.oversubscription = 4;
  spec.fabric.spines = 2;
  const Cluster cluster = build_cluster(spec, 2).value();
  int seen = 0;
  for (const Link& link : cluster.topology->links()) {
    if (link.link_class != LinkClass::kSpine) continue;
    ++seen;
    EXPECT_DOUBLE_EQ(link.capacity.value(), 32 * 50e9 / 4 / 2);  // 32 hosts per unit, one 50 GB/s NIC each on a rail
  }
  EXPECT_EQ(seen, 8 * 2 * 2);  // leaves x spines x directions
}

TEST(ClusterNames, APartOfANameFindsTheWhole) {
  const Outcome<Cluster> found = build_cluster("h100", 1);
  ASSERT_FALSE(found.ok());
  EXPECT_THAT(found.problems().front().repair, HasSubstr("'dgx-h100'"));
  EXPECT_THAT(build_cluster("dgx-h10", 1).problems().front().repair, HasSubstr("'dgx-h100'"));
}

TEST(TopologyCheck, BytesWrittenForBitsAreSeen) {
  const auto nic_warnings = [](const std::string& rate) {
    const Outcome<Cluster> cluster = read_topology(
        R"({"schema": "cpfit-topology/1", "name": "x", "base": "dgx-h100", "nodes": 2, "set": {"nic_rate": ")" + rate + R"("}})",
        "x.json", 0);
    const Problems found = check_topology(cluster.value());
    return std::count_if(found.begin(), found.end(), [](const Problem& p) { return p.code == "topology.warning.nic"; });
  };
  EXPECT_EQ(nic_warnings("400 Gb/s"), 0);
  EXPECT_GT(nic_warnings("400 GB/s"), 0);  // eight times as much, behind a slot of 63 GB/s
}

TEST(DeviceOrder, RanksTakeTheGpusThatItNames) {
  // Two hosts of p4d: GPUs 2n and 2n+1 share NIC n. Host 0 backwards, host 1 as numbered.
  const Cluster numbered = build_cluster("aws-p4d", 2).value();
  const Cluster ordered = with_device_orders(numbered, {{7, 6, 5, 4, 3, 2, 1, 0}, {0, 1, 2, 3, 4, 5, 6, 7}}).value();
  const auto vertex = [&](std::int32_t v) { return ordered.topology->vertices()[static_cast<std::size_t>(v)]; };
  for (std::int64_t rank = 0; rank < 16; ++rank) {
    const std::int64_t gpu = rank < 8 ? 7 - rank : rank;
    EXPECT_EQ(ordered.topology->gpus()[static_cast<std::size_t>(rank)], numbered.topology->gpus()[static_cast<std::size_t>(gpu)]);
    EXPECT_EQ(ordered.topology->nic_of(rank), numbered.topology->nic_of(gpu)) << "the NIC belongs to the GPU, not to its rank";
    EXPECT_EQ(ordered.topology->route(rank, 15 - rank), numbered.topology->route(gpu, rank < 8 ? 15 - rank : 7 - (15 - rank)));
  }
  EXPECT_EQ(vertex(ordered.topology->gpus()[0]).name, "n0.gpu7");
  EXPECT_TRUE(numbered.topology->nodes_alike());
  EXPECT_FALSE(ordered.topology->nodes_alike()) << "hosts are ranked differently: no symmetry";
  const Cluster alike = with_device_orders(ordered, {{1, 0, 3, 2, 5, 4, 7, 6}}).value();
  EXPECT_TRUE(alike.topology->nodes_alike());
  EXPECT_EQ(alike.topology->gpus()[0], numbered.topology->gpus()[1]) << "orders replace each other";
  // More nodes keep the orders, in turns.
  const Cluster four = with_nodes(ordered, 4).value();
  EXPECT_EQ(four.topology->vertices()[static_cast<std::size_t>(four.topology->gpus()[16])].name, "n2.gpu7");
  EXPECT_EQ(four.topology->vertices()[static_cast<std::size_t>(four.topology->gpus()[24])].name, "n3.gpu0");
}

TEST(DeviceOrder, ComposesShortensAndIsSaid) {
  const DeviceOrders first{{2, 0, 1}}, then{{0, 1, 2}, {2, 1, 0}};
  EXPECT_EQ(composed(first, then), (DeviceOrders{{2, 0, 1}, {1, 0, 2}}));  // place 0 of the second takes place 2 of the first
  EXPECT_EQ(composed({}, then), then);
  EXPECT_EQ(composed(first, {}), first);
  EXPECT_EQ(shortest({{0, 1}, {1, 0}, {0, 1}, {1, 0}}), (DeviceOrders{{0, 1}, {1, 0}}));
  EXPECT_EQ(shortest({{0, 1}, {1, 0}, {0, 1}}), (DeviceOrders{{0, 1}, {1, 0}, {0, 1}}));
  const Cluster cluster = build_cluster("mi300x-8way", 4).value();
  const DeviceOrders orders{{0, 1, 2, 3, 4, 5, 6, 7}, {7, 6, 5, 4, 3, 2, 1, 0}};
  const std::vector<std::string> lines = device_lines(cluster, orders);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], "HIP_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 on nodes 0, 2");
  EXPECT_EQ(lines[1], "HIP_VISIBLE_DEVICES=7,6,5,4,3,2,1,0 on nodes 1, 3");
  EXPECT_EQ(parse_device_order(" 1, 0,2 ").value(), (std::vector<std::int32_t>{1, 0, 2}));
  for (const char* wrong : {"", "a", "1,", "1;0", "-1,0", "99999999999", "1 0"}) EXPECT_FALSE(parse_device_order(wrong)) << wrong;
  EXPECT_FALSE(with_device_orders(cluster, {{0, 1, 2, 3, 4, 5, 6, 6}}).ok());
  EXPECT_FALSE(with_device_orders(cluster, {{0, 1, 2}}).ok());
}

}  // namespace
}  // namespace cpfit
