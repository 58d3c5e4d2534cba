// The GPU data sheets as they ship: complete, consistent, findable under the names people type.
#include <gmock/gmock.h>

#include <set>

#include "model/cluster/cluster.h"
#include "model/cluster/gpu.h"
#include "model/cluster/topology.h"

namespace cpfit {
namespace {

TEST(GpuPresets, EveryRowIsCompleteAndConsistent) {
  const std::vector<Gpu> gpus = gpu_presets();
  ASSERT_GE(gpus.size(), 20u);
  std::set<std::string> names;
  for (const Gpu& gpu : gpus) {
    SCOPED_TRACE(gpu.name);
    EXPECT_TRUE(names.insert(gpu.name).second) << "listed twice";
    EXPECT_FALSE(gpu.source.empty());
    EXPECT_GT(gpu.memory_usable.value(), 0.9 * gpu.memory.value());
    EXPECT_LE(gpu.memory_usable.value(), gpu.memory.value());
    EXPECT_GT(gpu.hbm.value(), 0);
    EXPECT_GT(gpu.fp16.value(), 0);
    EXPECT_GT(gpu.sm_count, 0);
    EXPECT_GT(gpu.pcie.value(), 0);
    EXPECT_EQ(gpu.scale_up.value() > 0, !gpu.scale_up_link.empty());
    if (gpu.fp8.value() > 0) {
      EXPECT_GE(gpu.fp8.value(), 1.9 * gpu.fp16.value());  // half the bits, twice the rate
    }
    if (gpu.fp4.value() > 0) {
      EXPECT_GE(gpu.fp4.value(), 2.0 * gpu.fp8.value());
    }
  }
}

TEST(GpuPresets, KnownValues) {
  const Gpu h100 = find_gpu("H100-SXM5-80GB").value();
  EXPECT_DOUBLE_EQ(h100.bf16.value(), 989e12);
  EXPECT_DOUBLE_EQ(h100.scale_up.value(), 18 * 25e9);  // 18 NVLink 4 of 25 GB/s per direction
  EXPECT_EQ(h100.generation, "hopper");
  EXPECT_FALSE(h100.assumed);
  EXPECT_DOUBLE_EQ(find_gpu("b200").value().fp4.value(), 9e15);
  EXPECT_DOUBLE_EQ(find_gpu("gb200").value().fp4.value(), 10e15);
  EXPECT_DOUBLE_EQ(find_gpu("v100").value().bf16.value(), 0);
  const Gpu teton = find_gpu("h100-96gb").value();
  EXPECT_DOUBLE_EQ(teton.hbm.value(), 2.4e12);
  EXPECT_TRUE(teton.assumed);
  EXPECT_DOUBLE_EQ(teton.memory_usable.value(), 0.99 * 96 * kGiB);
}

TEST(GpuPresets, FindsAliasesWhateverTheCase) {
  EXPECT_EQ(find_gpu("h100").value().name, "H100-SXM5-80GB");
  EXPECT_EQ(find_gpu("NVIDIA H100 80GB HBM3").value().name, "H100-SXM5-80GB");
  EXPECT_EQ(find_gpu("a100_40gb").value().name, "A100-SXM4-40GB");
}

TEST(GpuPresets, UnknownNameSuggestsTheNearest) {
  const Outcome<Gpu> gpu = find_gpu("H100-SMX5-80GB");
  ASSERT_FALSE(gpu);
  EXPECT_EQ(gpu.problems().front().code, "gpu.unknown");
  EXPECT_THAT(gpu.problems().front().repair, testing::HasSubstr("H100-SXM5-80GB"));
}

TEST(ClusterPresets, AllBuildForOneHostAndForSeveral) {
  const std::vector<std::string> names = cluster_preset_names();
  EXPECT_GE(names.size(), 25u);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    for (const std::int64_t nodes : {1, 3}) {
      const Outcome<Cluster> cluster = build_cluster(name, nodes);
      ASSERT_TRUE(cluster) << to_text(cluster.problems().front());
      EXPECT_EQ(static_cast<std::int64_t>(cluster->topology->gpus().size()), cluster->gpus());
      EXPECT_FALSE(cluster->source.empty());
      for (std::int64_t gpu = 1; gpu < cluster->gpus(); ++gpu) {
        EXPECT_TRUE(cluster->topology->reachable(0, gpu));
        EXPECT_TRUE(cluster->topology->reachable(gpu, 0));
      }
    }
  }
}

TEST(ClusterPresets, DomainsAreWhatNvlinkJoins) {
  EXPECT_EQ(build_cluster("dgx-h100", 4)->scale_up_domain, 8);
  EXPECT_EQ(build_cluster("pcie-8gpu-l40s", 2)->scale_up_domain, 1);
  EXPECT_EQ(build_cluster("a100-pcie-4gpu-bridge", 1)->scale_up_domain, 2);
  EXPECT_EQ(build_cluster("gb200-nvl72", 18)->scale_up_domain, 72);
  EXPECT_EQ(build_cluster("gb200-nvl72", 36)->scale_up_domain, 72);  // two full racks
  EXPECT_EQ(build_cluster("gb200-nvl72", 64)->scale_up_domain, 64);  // 64 = 4 x 16: two spare trays per rack
}

TEST(ClusterPresets, WrongNamesAndCountsAreProblems) {
  const Outcome<Cluster> name = build_cluster("dgx-h10", 1);
  ASSERT_FALSE(name);
  EXPECT_THAT(name.problems().front().repair, testing::HasSubstr("dgx-h"));
  for (const std::int64_t nodes : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 40}) {
    const Outcome<Cluster> count = build_cluster("dgx-h100", nodes);
    ASSERT_FALSE(count);
    EXPECT_EQ(count.problems().front().code, "cluster.nodes");
  }
}

}  // namespace
}  // namespace cpfit
