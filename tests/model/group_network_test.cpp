// What process groups see of the network: golden values derived from link capacities.
#include <gmock/gmock.h>

#include "model/cluster/cluster_spec.h"
#include "model/cluster/group_network.h"

namespace cpfit {
namespace {

using testing::DoubleNear;

double gb(BytesPerSecond rate) { return rate.value() / 1e9; }

GroupNetwork priced(const std::string& preset, std::int64_t nodes, GroupShape shape) {
  return price_group(build_cluster(preset, nodes).value(), shape);
}

TEST(GroupNetwork, RingInsideOneH100Host) {
  const GroupNetwork network = priced("dgx-h100", 1, {1, 8});
  EXPECT_DOUBLE_EQ(gb(network.ring.rate), 450);  // every GPU sends one flow up its own 18 links of 25 GB/s
  EXPECT_FALSE(network.ring.crosses_node);
  EXPECT_EQ(network.ring.slowest, LinkClass::kNvlink);
  EXPECT_EQ(network.ring.flows, 1);
  EXPECT_NEAR(network.ring.latency.value(), 0.6e-6, 1e-12);  // two links of 0.3 us
  EXPECT_EQ(network.domains, 1);
  EXPECT_EQ(network.members_per_domain, 8);
  EXPECT_EQ(network.rings_leaving, 0);
  EXPECT_DOUBLE_EQ(gb(network.inner_hop.rate), 450);
  EXPECT_DOUBLE_EQ(gb(network.collective_rate), 450);
  EXPECT_NEAR(gb(network.alltoall_rate), 450, 1e-9);
}

TEST(GroupNetwork, Tp2Cp8OverTwoHosts) {
  // Ring members 0, 2, 4, 6 | 8, 10, 12, 14 and the odd lane: GPUs 6 and 7 leave at once, each on its own 400 Gb/s NIC.
  const GroupNetwork network = priced("dgx-h100", 2, {2, 8});
  EXPECT_DOUBLE_EQ(gb(network.ring.rate), 50);
  EXPECT_TRUE(network.ring.crosses_node);
  EXPECT_EQ(network.ring.slowest, LinkClass::kNic);
  EXPECT_EQ(network.ring.flows, 1);
  EXPECT_EQ(network.ring.link, "n0.nic6 -> leaf6");
  EXPECT_EQ(network.rings_leaving, 2);
  EXPECT_DOUBLE_EQ(gb(network.inner_hop.rate), 450);
  // 4 PCIe links of 0.25 us, 2 NIC links of 0.3 us, up and down the spine 2 x 0.2 us: rails 6 to 0
  EXPECT_NEAR(network.ring.latency.value(), 2.0e-6, 1e-12);
  EXPECT_EQ(network.members_per_domain, 4);
  EXPECT_EQ(network.domains, 2);
  EXPECT_DOUBLE_EQ(gb(network.collective_rate), 4 * 50);  // four members, four NICs
  // 4 of a member's 7 destinations are remote: its NIC carries 4/7 of what it injects.
  EXPECT_NEAR(gb(network.alltoall_rate), 50 * 7.0 / 4, 1e-9);
}

TEST(GroupNetwork, ARingThatLeavesAloneHasTheNicsThatAreEquallyNear) {
  // One ring over all GPUs leaves a node once: over one of its NICs of 12.5 GB/s, or over both of the socket where the pair of
  // neighbours has a communicator of its own. What is slowest then are the NICs still: 25 GB/s against PCIe's 31.
  const GroupNetwork flat = priced("a800-4x100g-sockets", 4, {1, 32});
  EXPECT_DOUBLE_EQ(gb(flat.ring.rate), 12.5);
  EXPECT_DOUBLE_EQ(gb(flat.pair_ring.rate), 25);
  EXPECT_EQ(flat.pair_ring.slowest, LinkClass::kNic);
  EXPECT_EQ(flat.pair_ring.nic_ports, 2);
  EXPECT_DOUBLE_EQ(flat.pair_ring.latency.value(), flat.ring.latency.value());  // of one way, not of both
  // Two rings leave, both over NICs 2 and 3: a half of each for each. Eight leave over four NICs: an eighth of 50 GB/s.
  EXPECT_DOUBLE_EQ(gb(priced("a800-4x100g-sockets", 4, {2, 16}).pair_ring.rate), 12.5);
  const GroupNetwork eight = priced("a800-4x100g-sockets", 4, {8, 4});
  EXPECT_DOUBLE_EQ(gb(eight.ring.rate), 6.25);
  EXPECT_DOUBLE_EQ(gb(eight.pair_ring.rate), 6.25);
  // Inside a node, and where one NIC is nearest, a pair has what the ring has.
  for (const GroupShape shape : {GroupShape{1, 8}, GroupShape{1, 16}, GroupShape{2, 8}}) {
    const GroupNetwork network = priced("dgx-h100", 2, shape);
    EXPECT_DOUBLE_EQ(network.pair_ring.rate.value(), network.ring.rate.value());
    EXPECT_EQ(network.pair_ring.link, network.ring.link);
  }
}

TEST(GroupNetwork, DataParallelOnRails) {
  const GroupNetwork network = priced("dgx-h100", 8, {8, 8});
  EXPECT_DOUBLE_EQ(gb(network.ring.rate), 50);  // one member per host, eight groups on eight rails
  EXPECT_EQ(network.rings_leaving, 8);
  EXPECT_EQ(network.members_per_domain, 1);
  EXPECT_EQ(network.domains, 8);
  EXPECT_DOUBLE_EQ(gb(network.collective_rate), 50);
  EXPECT_EQ(network.collective_link, LinkClass::kNic);
  EXPECT_NEAR(network.ring.latency.value(), 4 * 0.25e-6 + 2 * 0.3e-6, 1e-12);  // no spine
}

TEST(GroupNetwork, WorldGroupUsesEveryNic) {
  const GroupNetwork network = priced("dgx-h100", 2, {1, 16});
  EXPECT_DOUBLE_EQ(gb(network.ring.rate), 50);              // the one hop that leaves
  EXPECT_DOUBLE_EQ(gb(network.collective_rate), 8 * 50.0);  // min(450, 8 members x 50)
  EXPECT_NEAR(gb(network.alltoall_rate), 50 * 15.0 / 8, 1e-9);
}

TEST(GroupNetwork, CollectivesStopAtNvlink) {
  const GroupNetwork h800 = priced("h800-8x400g", 2, {1, 16});
  EXPECT_DOUBLE_EQ(gb(h800.collective_rate), 200);  // min(8 links x 25, 8 x 50)
  EXPECT_EQ(h800.collective_link, LinkClass::kNvlink);
}

TEST(GroupNetwork, SharedNics) {
  // p4d: 100 Gb/s per two GPUs. One member per host: both GPUs of a NIC send, 12.5 / 2.
  EXPECT_DOUBLE_EQ(gb(priced("aws-p4d", 4, {8, 4}).ring.rate), 6.25);
  EXPECT_DOUBLE_EQ(gb(priced("aws-p4d", 2, {1, 16}).collective_rate), 8 * 6.25);
  // Two DGX A100 with one 100 Gb/s link for all eight GPUs.
  EXPECT_DOUBLE_EQ(gb(priced("a100-2x8-100g", 2, {8, 2}).ring.rate), 12.5 / 8);
  EXPECT_DOUBLE_EQ(gb(priced("a100-2x8-100g", 2, {1, 16}).ring.rate), 12.5);
  // p5: four bonded 100 Gb/s EFA per GPU.
  EXPECT_DOUBLE_EQ(gb(priced("aws-p5", 4, {8, 4}).ring.rate), 50);
}

TEST(GroupNetwork, Nvl72KeepsTp8Cp8Inside) {
  const GroupNetwork ring = priced("gb200-nvl72", 64, {8, 8});  // 64 of the 72 GPUs of each rack
  EXPECT_DOUBLE_EQ(gb(ring.ring.rate), 900);
  EXPECT_FALSE(ring.ring.crosses_node);
  EXPECT_EQ(ring.domains, 1);
  // dp outside: stride 64, one member per rack, every tray NIC busy with its own GPU
  const GroupNetwork dp = priced("gb200-nvl72", 64, {64, 4});
  EXPECT_DOUBLE_EQ(gb(dp.ring.rate), 50);
  EXPECT_EQ(dp.rings_leaving, 64);
  // tp 8 x cp 16 spans two racks with 8 members each: 8 NIC shares
  EXPECT_DOUBLE_EQ(gb(priced("gb200-nvl72", 64, {8, 16}).collective_rate), 8 * 50);
}

TEST(GroupNetwork, FullRacksMakeGroupsOf64Straddle) {
  const GroupNetwork ring = priced("gb200-nvl72", 36, {8, 8});  // 144 GPUs: ranks 64..127 lie on both racks
  EXPECT_TRUE(ring.ring.crosses_node);
  EXPECT_EQ(ring.domains, 2);
  EXPECT_EQ(ring.members_per_domain, 1);  // ranks 64..71 are one member per lane in the first rack
}

TEST(GroupNetwork, PcieBoxSharesTheSocketLink) {
  // Sockets joined at 16 GB/s. One ring of 8 crosses once each way; the even and the odd ring of stride 2 cross together.
  const GroupNetwork whole = priced("pcie-8gpu-l40s", 1, {1, 8});
  EXPECT_DOUBLE_EQ(gb(whole.ring.rate), 16);
  EXPECT_EQ(whole.ring.slowest, LinkClass::kSocket);
  EXPECT_FALSE(whole.ring.crosses_node);
  EXPECT_EQ(whole.domains, 1);
  EXPECT_DOUBLE_EQ(gb(priced("pcie-8gpu-l40s", 1, {2, 4}).ring.rate), 8);
  EXPECT_DOUBLE_EQ(gb(priced("pcie-8gpu-l40s", 1, {1, 4}).ring.rate), 31);  // inside a socket: PCIe 4 x16
  // Exchange of 8: each GPU sends 4/7 across, four GPUs share 16 GB/s: 16 / (4 x 4/7) = 7. The sockets forward less: 13 GB/s over
  // the number of peers. A single peer inside the socket has the link.
  EXPECT_NEAR(gb(whole.alltoall_rate), 13.0 / 7, 1e-9);
  EXPECT_NEAR(gb(priced("pcie-8gpu-l40s", 1, {1, 4}).alltoall_rate), 13.0 / 3, 1e-9);
  EXPECT_NEAR(gb(priced("pcie-8gpu-l40s", 1, {1, 2}).alltoall_rate), 31, 1e-9);
  EXPECT_NEAR(gb(priced("a100-pcie-4gpu", 1, {1, 4}).alltoall_rate), 31, 1e-9);  // a PCIe switch does not mind
  // Across hosts four GPUs share a 200 Gb/s NIC.
  EXPECT_DOUBLE_EQ(gb(priced("pcie-8gpu-l40s", 2, {8, 2}).ring.rate), 25.0 / 4);
}

TEST(GroupNetwork, BridgedPairs) {
  EXPECT_DOUBLE_EQ(gb(priced("a100-pcie-4gpu-bridge", 1, {1, 2}).ring.rate), 300);  // 12 links of 25
  const GroupNetwork four = priced("a100-pcie-4gpu-bridge", 1, {1, 4});
  EXPECT_DOUBLE_EQ(gb(four.ring.rate), 16);        // pair to pair over the CPU fabric
  EXPECT_DOUBLE_EQ(gb(four.collective_rate), 16);  // the bridges do not join all four
}

TEST(GroupNetwork, MeshesGiveARingOneLinkAndACollectiveAll) {
  const GroupNetwork eight = priced("mi300x-8way", 1, {1, 8});
  EXPECT_DOUBLE_EQ(gb(eight.ring.rate), 64);
  EXPECT_EQ(eight.ring.slowest, LinkClass::kXgmi);
  EXPECT_DOUBLE_EQ(gb(eight.collective_rate), 7 * 64);
  EXPECT_NEAR(gb(eight.alltoall_rate), 7 * 64, 1e-9);  // 1/7 to each peer on its own link
  EXPECT_DOUBLE_EQ(gb(priced("mi300x-8way", 1, {1, 2}).collective_rate), 64);
  // DGX-1, GPUs 0..7: six links of 25 GB/s each; GPUs 0 and 1 share one.
  EXPECT_DOUBLE_EQ(gb(priced("dgx1-v100", 1, {1, 8}).collective_rate), 150);
  EXPECT_DOUBLE_EQ(gb(priced("dgx1-v100", 1, {1, 2}).collective_rate), 25);
}

TEST(GroupNetwork, OversubscribedSpineIsSharedByTheUnit) {
  ClusterSpec spec = find_cluster_spec("dgx-h100").value();
  spec.fabric.nodes_per_unit = 4;
  spec.fabric.oversubscription = 4;
  const Cluster cluster = build_cluster(spec, 8).value();
  // tp=2, cp=8: per pair of hosts, rails 6 and 7 of each host go to rails 0 and 1. Leaf 6 of a unit has an uplink of 4 x 50 / 4 =
  // 50 GB/s; its four hosts send one flow each.
  const GroupNetwork crossing = price_group(cluster, {2, 8});
  EXPECT_DOUBLE_EQ(gb(crossing.ring.rate), 50.0 / 4);
  EXPECT_EQ(crossing.ring.slowest, LinkClass::kSpine);
  EXPECT_EQ(crossing.ring.flows, 4);
  EXPECT_EQ(crossing.ring.link, "leaf6 -> spine0");
  // Same rail inside a unit never sees the spine.
  EXPECT_DOUBLE_EQ(gb(price_group(cluster, {8, 4}).ring.rate), 50);
  // Over both units one hop of each ring of eight crosses, one host of four on each rail: 50 / 1.
  EXPECT_DOUBLE_EQ(gb(price_group(cluster, {8, 8}).ring.rate), 50);
}

TEST(GroupNetwork, PodsOversubscribe) {
  ClusterSpec spec = find_cluster_spec("grand-teton-h100").value();
  spec.fabric.nodes_per_pod = 4;
  const Cluster cluster = build_cluster(spec, 8).value();
  // pp-like groups of two, 32 ranks apart: all 32 GPUs of a pod send to the other. Pod to core: 4 x 8 x 50 / 7; per flow 50 / 7.
  const GroupNetwork network = price_group(cluster, {32, 2});
  EXPECT_DOUBLE_EQ(gb(network.ring.rate), 50.0 / 7);
  EXPECT_EQ(network.ring.flows, 32);
}

TEST(GroupNetwork, SizeOneSendsNothing) {
  const GroupNetwork network = priced("dgx-h100", 1, {1, 1});
  EXPECT_DOUBLE_EQ(gb(network.ring.rate), 450);
  EXPECT_EQ(network.ring.flows, 0);
  EXPECT_DOUBLE_EQ(network.ring.latency.value(), 0);
}

TEST(GroupNetwork, OnePeriodGivesWhatTheWholeClusterGives) {
  // 40 units of 4 hosts. A cluster whose last host differs cannot use symmetry and routes all ranks; the ring inside the others
  // is unchanged by the odd host's faster PCIe, so both must agree.
  ClusterSpec spec = find_cluster_spec("dgx-h100").value();
  spec.fabric.nodes_per_unit = 4;
  spec.fabric.oversubscription = 3;
  const Cluster regular = build_cluster(spec, 160).value();
  Cluster odd = regular;
  std::vector<Link> links = regular.topology->links();
  for (Link& link : links) {
    if (regular.topology->vertices()[static_cast<std::size_t>(link.from)].name == "n159.cpu0") link.capacity *= 2;
  }
  odd.topology = std::make_shared<const Topology>(regular.topology->vertices(), links);
  ASSERT_TRUE(regular.topology->nodes_alike());
  ASSERT_FALSE(odd.topology->nodes_alike());
  for (const GroupShape shape : {GroupShape{1, 8}, {2, 8}, {4, 16}, {8, 4}, {8, 16}, {8, 160}, {3, 16}, {32, 10}, {1, 24}}) {
    const GroupNetwork a = price_group(regular, shape), b = price_group(odd, shape);
    EXPECT_DOUBLE_EQ(a.ring.rate.value(), b.ring.rate.value()) << shape.stride << " x " << shape.size;
    EXPECT_EQ(a.ring.flows, b.ring.flows);
    EXPECT_DOUBLE_EQ(a.ring.latency.value(), b.ring.latency.value());
    EXPECT_DOUBLE_EQ(a.collective_rate.value(), b.collective_rate.value());
    EXPECT_EQ(a.rings_leaving, b.rings_leaving);
    // Sampled shifts of the exchange differ with the count of ranks: within 5 %.
    EXPECT_NEAR(a.alltoall_rate.value(), b.alltoall_rate.value(), 0.05 * b.alltoall_rate.value())
        << shape.stride << " x " << shape.size;
  }
}

TEST(NetworkView, PreparesOnceAndAnswers) {
  NetworkView view(build_cluster("dgx-h100", 2).value());
  EXPECT_FALSE(view.prepared({2, 8}));
  view.prepare({2, 8});
  view.prepare({2, 8});
  EXPECT_DOUBLE_EQ(gb(view.at({2, 8}).ring.rate), 50);
  EXPECT_DEATH((void)view.at({4, 4}), "was not prepared");
}

TEST(RingHops, FollowTheGroupOfRankZero) {
  const std::vector<RingHop> hops = ring_hops(build_cluster("dgx-h100", 2).value(), {2, 8});
  ASSERT_EQ(hops.size(), 8u);
  EXPECT_EQ(hops[3].from, 6);
  EXPECT_EQ(hops[3].to, 8);
  EXPECT_TRUE(hops[3].network.crosses_node);
  EXPECT_TRUE(hops[7].network.crosses_node);  // 14 back to 0
  EXPECT_EQ(hops[7].to, 0);
  EXPECT_FALSE(hops[0].network.crosses_node);
  EXPECT_DOUBLE_EQ(gb(hops[0].network.rate), 450);
}

}  // namespace
}  // namespace cpfit
