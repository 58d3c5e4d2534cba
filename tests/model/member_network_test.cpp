// Groups listed GPU by GPU are priced as groups at a stride are, and what a stride cannot say is derived by hand.
#include <gtest/gtest.h>

#include <numeric>

#include "model/cluster/host_copies.h"
#include "model/cluster/member_network.h"

namespace cpfit {
namespace {

/// All groups of a shape, as lists.
std::vector<std::vector<std::int64_t>> listed(std::int64_t gpus, GroupShape shape) {
  std::vector<std::vector<std::int64_t>> groups;
  for (std::int64_t base = 0; base + shape.stride * shape.size <= gpus; base += shape.stride * shape.size) {
    for (std::int64_t lane = 0; lane < shape.stride; ++lane) {
      std::vector<std::int64_t>& group = groups.emplace_back();
      for (std::int64_t i = 0; i < shape.size; ++i) group.push_back(base + lane + i * shape.stride);
    }
  }
  return groups;
}

TEST(MemberNetwork, ListsAtAStrideArePricedAsTheShape) {
  for (const char* preset : {"dgx-h100", "pcie-8gpu-l40s", "a100-pcie-4gpu-bridge", "mi300x-8way", "dgx1-v100"}) {
    const Cluster cluster = build_cluster(preset, 4).value();
    for (const GroupShape shape : {GroupShape{1, 2}, GroupShape{1, 4}, GroupShape{2, 4}, GroupShape{1, 16}, GroupShape{4, 4}}) {
      SCOPED_TRACE(testing::Message() << preset << " stride " << shape.stride << " size " << shape.size);
      const GroupNetwork a = price_group(cluster, shape);
      const GroupNetwork b = price_members(cluster, listed(cluster.gpus(), shape), true);
      EXPECT_EQ(a.members_per_domain, b.members_per_domain);
      EXPECT_EQ(a.domains, b.domains);
      EXPECT_DOUBLE_EQ(a.ring.rate.value(), b.ring.rate.value());
      EXPECT_DOUBLE_EQ(a.ring.latency.value(), b.ring.latency.value());
      EXPECT_EQ(a.ring.crosses_node, b.ring.crosses_node);
      EXPECT_DOUBLE_EQ(a.inner_hop.rate.value(), b.inner_hop.rate.value());
      EXPECT_DOUBLE_EQ(a.collective_rate.value(), b.collective_rate.value());
      EXPECT_EQ(a.collective_link, b.collective_link);
      EXPECT_NEAR(a.alltoall_rate.value() / b.alltoall_rate.value(), 1.0, 1e-9);
      EXPECT_EQ(a.rings_leaving, b.rings_leaving);
    }
  }
}

TEST(MemberNetwork, RoutesSayWhatTheyCross) {
  const Cluster dgx = build_cluster("dgx-h100", 2).value();
  const FlowRoute inside = flow_route(*dgx.topology, 0, 7);
  EXPECT_DOUBLE_EQ(inside.rate.value(), 450e9);
  EXPECT_FALSE(inside.crosses_node);
  // GPU, PCIe switch, NIC, leaf, NIC, PCIe switch, GPU: 4 * 250 ns + 2 * 300 ns; over the spine two links of 200 ns more.
  const FlowRoute same_rail = flow_route(*dgx.topology, 7, 15), other_rail = flow_route(*dgx.topology, 7, 8);
  EXPECT_NEAR(same_rail.latency.value(), 1.6e-6, 1e-12);
  EXPECT_NEAR(other_rail.latency.value(), 2.0e-6, 1e-12);
  EXPECT_TRUE(same_rail.crosses_node && !same_rail.crosses_rail && !same_rail.crosses_spine);
  EXPECT_TRUE(other_rail.crosses_rail && other_rail.crosses_spine);
  EXPECT_EQ(route_text(*dgx.topology, 7, 15), "rail 7");
  EXPECT_EQ(route_text(*dgx.topology, 7, 8), "rail 7 to 0");
  const Cluster box = build_cluster("pcie-8gpu-l40s", 1).value();
  EXPECT_TRUE(flow_route(*box.topology, 0, 7).crosses_socket);
  EXPECT_FALSE(flow_route(*box.topology, 0, 1).crosses_socket);
}

TEST(MemberNetwork, FlowsShareTheLinksTheyMeetOn) {
  const Cluster dgx = build_cluster("dgx-h100", 2).value();
  // Two flows leave GPU 0 for other rails of node 1: its NIC of 50 GB/s is shared; a third from GPU 1 is alone.
  const std::vector<GpuFlow> flows{{0, 9}, {0, 10}, {1, 11}};
  const std::vector<HopNetwork> hops = concurrent_hops(*dgx.topology, flows);
  EXPECT_DOUBLE_EQ(hops[0].rate.value(), 25e9);
  EXPECT_DOUBLE_EQ(hops[1].rate.value(), 25e9);
  EXPECT_EQ(hops[1].flows, 2);
  EXPECT_DOUBLE_EQ(hops[2].rate.value(), 50e9);
}

// Two GPUs to a switch whose way up carries 31 GB/s; hosts do not share theirs.
TEST(HostCopies, GpusOfOneSwitchShareItsWayUp) {
  const Cluster hgx = build_cluster("a800-8x200g", 2).value();
  EXPECT_DOUBLE_EQ(host_copies(hgx, 1).rate.value(), 31e9);
  EXPECT_DOUBLE_EQ(host_copies(hgx, 2).rate.value(), 15.5e9);
  EXPECT_DOUBLE_EQ(host_copies(hgx, 8).rate.value(), 15.5e9);
  EXPECT_DOUBLE_EQ(host_copies(hgx, 16).rate.value(), 15.5e9);
  EXPECT_EQ(host_copies(hgx, 16).slowest, LinkClass::kPcie);
  EXPECT_NEAR(host_copies(hgx, 8).latency.value(), 2 * 250e-9, 1e-12);  // GPU, switch, CPU
}

// A DGX-1 whose first GPUs communicate alone. Rings, each both ways over one lane of 25 GB/s of every link: two GPUs share one
// lane; 0-1-2; 0-1-2-3 and 0-2-1-3; GPU 4 is joined to 0 alone of the first five; 4 and 5 to each other and to one more each of
// the first six, so that their lane closes one ring; 4 has four lanes and 6 too of the first seven; three rings over all eight.
// That many lanes were measured: all-reduces of 1 GB at 22.6, 45, 85, 37, 46, 87 and 134 GB/s (vTrain).
TEST(MemberNetwork, RingsOfACubeMeshAreWhatItsLanesClose) {
  const Cluster cluster = build_cluster("dgx1-v100", 1).value();
  const auto rate = [&](std::int64_t gpus) {
    std::vector<std::int64_t> group(static_cast<std::size_t>(gpus));
    std::iota(group.begin(), group.end(), 0);
    return price_members(cluster, {{group}}, false).collective_rate.value() / 1e9;
  };
  EXPECT_DOUBLE_EQ(rate(2), 25);
  EXPECT_DOUBLE_EQ(rate(3), 2 * 25);
  EXPECT_DOUBLE_EQ(rate(4), 4 * 25);
  EXPECT_LT(rate(5), 2 * 25);  // over a relay: no ring
  EXPECT_DOUBLE_EQ(rate(6), 2 * 25);
  EXPECT_DOUBLE_EQ(rate(7), 4 * 25);
  EXPECT_DOUBLE_EQ(rate(8), 6 * 25);
}

}  // namespace
}  // namespace cpfit
