// Rate surfaces: the shipped coefficients behave as the physics they stand for, say when they extrapolate, and refuse nonsense.
#include "model/rates/rate_set.h"
#include "model/rates/reach.h"

#include <gmock/gmock.h>

#include <cmath>

#include "model/cluster/gpu.h"
#include "model/presets/embedded.h"
#include "model/rates/curves.h"
#include "model/rates/gpu_rates.h"
#include "model/rates/group_rate.h"
#include "model/rates/overlay.h"
#include "model/rates/rate_tables.h"

namespace cpfit {
namespace {

Gpu h100() {
  Gpu gpu;
  gpu.name = "H100-SXM5-80GB";
  gpu.generation = "hopper";
  gpu.hbm = gb_per_s(3350);
  gpu.bf16 = tflops(989);
  gpu.fp16 = tflops(989);
  gpu.fp8 = tflops(1979);
  gpu.sm_count = 132;
  gpu.scale_up = gb_per_s(450);
  gpu.pcie = gb_per_s(63);
  gpu.scale_up_link = "nvlink4";
  return gpu;
}

Gpu blackwell(const char* name, double bf16, double fp4) {
  Gpu gpu = h100();
  gpu.name = name;
  gpu.generation = "blackwell";
  gpu.bf16 = gpu.fp16 = tflops(bf16);
  gpu.fp8 = tflops(2 * bf16);
  gpu.fp4 = tflops(fp4);
  gpu.scale_up_link = "nvlink5";
  return gpu;
}

AttentionShape causal(std::int64_t length, std::int64_t heads) {
  AttentionShape shape;
  shape.q_len = shape.kv_len = length;
  shape.pairs = 0.5 * static_cast<double>(length) * static_cast<double>(length);
  shape.heads = heads;
  shape.kv_heads = heads;
  return shape;
}

double attained(const AttentionShape& shape, AttentionPass pass, const Rated& rated) {
  const double d = static_cast<double>(shape.head_dim);
  return flops_per_pair(pass, d, d) * shape.pairs * static_cast<double>(shape.heads * shape.batch) / rated.time.value();
}

TEST(Rates, LargeGemmsReachTheSharesThatWerePublished) {
  const RateSet rates = RateSet::defaults();
  const GemmShape shape{8192, 8192, 8192};
  const double flops = 2.0 * 8192.0 * 8192.0 * 8192.0;
  const Rated bf16 = gemm_time(rates.of(h100()), shape, MathKind::kBf16);
  EXPECT_GT(flops / bf16.time.value(), 0.72 * 989e12);
  EXPECT_LT(flops / bf16.time.value(), 0.84 * 989e12);
  EXPECT_TRUE(bf16.in_range);
  EXPECT_EQ(bf16.evidence, Evidence::kFitted);
  EXPECT_GT(bf16.relative_sigma, 0.01f);
  EXPECT_LT(bf16.relative_sigma, 0.15f);
  const Rated fp8 = gemm_time(rates.of(h100()), shape, MathKind::kFp8Tensor);
  EXPECT_GT(flops / fp8.time.value(), 1000e12);
  EXPECT_LT(fp8.time, bf16.time);
}

TEST(Rates, OutsideTheMeasuredRangeIsSaidAndLessCertain) {
  const RateSet rates = RateSet::defaults();
  const Rated inside = gemm_time(rates.of(h100()), {4096, 4096, 4096}, MathKind::kBf16);
  const Rated outside = gemm_time(rates.of(h100()), {16, 4096, 4096}, MathKind::kBf16);
  EXPECT_FALSE(outside.in_range);
  EXPECT_GT(outside.relative_sigma, inside.relative_sigma);
  // Sixteen rows read the whole weight: HBM bounds the time from below.
  EXPECT_GT(outside.time.value(), 4096.0 * 4096.0 * 2.0 / 3350e9);
}

TEST(Rates, AboveTheMeasuredRangeTrustFadesByTheOctave) {
  const RateSet rates = RateSet::defaults();
  // H100: products of up to 65,536 in k. Twice as much is an octave, sixteen times four: more than was tried.
  const Rated inside = gemm_time(rates.of(h100()), {4096, 4096, 65536}, MathKind::kBf16);
  const Rated twice = gemm_time(rates.of(h100()), {4096, 4096, 131072}, MathKind::kBf16);
  const Rated far = gemm_time(rates.of(h100()), {4096, 4096, 16 * 65536}, MathKind::kBf16);
  EXPECT_TRUE(inside.in_range);
  EXPECT_TRUE(twice.in_range);
  EXPECT_FALSE(far.in_range);
  EXPECT_NEAR(twice.relative_sigma, std::hypot(inside.relative_sigma, 0.02), 1e-6);
  EXPECT_NEAR(far.relative_sigma, std::hypot(inside.relative_sigma, 0.08), 1e-6);
}

TEST(Rates, FewHeadsOfALongSequenceAreAsManyTilesAsManyHeadsOfAShortOne) {
  AttentionCurve curve;
  curve.q_len = curve.kv_len = {512, 16384};
  curve.heads = {16, 1024};
  const auto shape = [](std::int64_t length, std::int64_t heads) {
    AttentionShape one;
    one.q_len = one.kv_len = length;
    one.heads = heads;
    one.pairs = static_cast<double>(length) * static_cast<double>(length) / 2;
    return one;
  };
  EXPECT_TRUE(reach_of(curve, shape(4096, 2)).inside());   // 8,192 rows, as 512 tokens of 16 heads
  EXPECT_TRUE(reach_of(curve, shape(2048, 2)).below);      // 4,096 rows
  EXPECT_FALSE(reach_of(curve, shape(256, 64)).inside());  // shorter than any
  EXPECT_NEAR(reach_of(curve, shape(65536, 16)).octaves_above, 2, 1e-12);
}

TEST(Rates, NarrowAttentionIsSlowAndBackwardSlowerThanForward) {
  const RateSet rates = RateSet::defaults();
  const GpuRates& gpu = rates.of(h100());
  const auto rate = [&](std::int64_t length, std::int64_t heads, AttentionPass pass) {
    return attained(causal(length, heads), pass, attention_time(gpu, causal(length, heads), pass, AttentionLibrary::kFlash3));
  };
  EXPECT_GT(rate(16384, 64, AttentionPass::kForward), 1.3 * rate(4096, 2, AttentionPass::kForward));
  EXPECT_GT(rate(16384, 64, AttentionPass::kForward), rate(1024, 64, AttentionPass::kForward));
  EXPECT_GT(rate(16384, 64, AttentionPass::kForward), rate(16384, 64, AttentionPass::kBackward));
  EXPECT_LT(rate(16384, 64, AttentionPass::kForward), 0.75 * 989e12);
}

TEST(Rates, DenseRectanglesTakeTheirOwnShare) {
  const RateSet rates = RateSet::defaults();
  AttentionShape step = causal(8192, 32);  // a zigzag step after the first: half of the keys, all of the queries
  step.causal = false;
  step.kv_len = 4096;
  step.pairs = 8192.0 * 4096.0;
  const Rated dense = attention_time(rates.of(h100()), step, AttentionPass::kForward, AttentionLibrary::kCudnn);
  const Rated diagonal = attention_time(rates.of(h100()), causal(8192, 32), AttentionPass::kForward, AttentionLibrary::kCudnn);
  EXPECT_LT(dense.time, diagonal.time);  // the same pairs without a diagonal to waste tiles on
}

TEST(Rates, AGpuWithoutTablesBorrowsItsGenerationsAndSaysSo) {
  const RateSet rates = RateSet::defaults();
  Gpu own = h100();
  Gpu other = h100();
  other.name = "H20-SXM-96GB";
  other.bf16 = tflops(148);
  other.sm_count = 78;
  const GemmShape shape{8192, 8192, 8192};
  const Rated known = gemm_time(rates.of(own), shape, MathKind::kBf16);
  const Rated borrowed = gemm_time(rates.of(other), shape, MathKind::kBf16);
  EXPECT_EQ(borrowed.evidence, Evidence::kAssumed);
  EXPECT_GT(borrowed.relative_sigma, known.relative_sigma);
  EXPECT_NEAR(borrowed.time / known.time, 989.0 / 148.0, 0.15 * 989.0 / 148.0);
}

// A GB300 is a B300's chip (four-bit arithmetic three times the eight-bit one) and takes its products of low precision, not those
// of the GB200, which come first in the file and whose four-bit arithmetic is twice the other.
TEST(Rates, AGpuWithoutTablesBorrowsOfItsOwnChip) {
  const RateSet rates = RateSet::defaults();
  const auto k_half = [&](const Gpu& gpu, MathKind math) {
    return rates.of(gpu).gemm[static_cast<std::size_t>(math)].curve.k_half;
  };
  for (const MathKind math : {MathKind::kFp8Tensor, MathKind::kMxfp8, MathKind::kNvfp4}) {
    EXPECT_EQ(k_half(blackwell("GB300", 2500, 15000), math), k_half(blackwell("B300-SXM", 2250, 14000), math));
    EXPECT_NE(k_half(blackwell("GB300", 2500, 15000), math), k_half(blackwell("GB200", 2500, 10000), math));
  }
}

// The same products take 2.365 ms in MXFP8 where they take 2.158 ms with a scale per tensor, as measured on B300; so on B200 and
// GB200, where MXFP8 was not measured.
TEST(Rates, BlockScalesOfThirtyTwoCostProductsATenth) {
  const RateSet rates = RateSet::defaults();
  for (const Gpu& gpu :
       {blackwell("B200-SXM", 2250, 9000), blackwell("GB200", 2500, 10000), blackwell("B300-SXM", 2250, 14000)}) {
    const GpuRates& own = rates.of(gpu);
    const GemmShape shape{16384, 16384, 16384};
    const double per_tensor = gemm_time(own, shape, MathKind::kFp8Tensor, 0.0).time.value();
    EXPECT_NEAR(gemm_time(own, shape, MathKind::kMxfp8, 0.0).time.value() / per_tensor, 2.365 / 2.158, 0.005) << gpu.name;
  }
}

TEST(Rates, AnEditedGpuIsAnotherGpu) {
  const RateSet rates = RateSet::defaults();
  Gpu slower = h100();
  slower.bf16 = tflops(500);
  const GemmShape shape{8192, 8192, 8192};
  EXPECT_GT(gemm_time(rates.of(slower), shape, MathKind::kBf16).time.value(),
            1.8 * gemm_time(rates.of(h100()), shape, MathKind::kBf16).time.value());
  EXPECT_EQ(&rates.of(h100()), &rates.of(h100()));
}

TEST(Rates, CollectivesGrowWithBytesAndRanksAndShareTheirLink) {
  const RateSet rates = RateSet::defaults();
  const GpuRates& gpu = rates.of(h100());
  const auto time = [&](std::int64_t ranks, double bytes, double rate) {
    return collective_time(gpu, CollectiveKind::kAllGather, LinkClass::kNvlink, gb_per_s(rate), Seconds(0), ranks, Bytes(bytes))
        .time.value();
  };
  EXPECT_EQ(time(1, 1e6, 450), 0.0);
  for (double bytes = 1024; bytes < 1e9; bytes *= 4) EXPECT_LE(time(8, bytes, 450), time(8, bytes * 4, 450)) << bytes;
  EXPECT_GT(time(8, 1e9, 225), 1.8 * time(8, 1e9, 450));
  EXPECT_GT(time(16, 1024, 450), time(8, 1024, 450));                   // beyond what was measured: more ring steps
  EXPECT_GT(time(6, 1024, 450), time(4, 1024, 450));                    // between
  EXPECT_NEAR(256e6 * 7 / 8 / time(8, 256e6, 450) / 1e9, 300.0, 40.0);  // bus rate of 256 MB on eight H100
}

// 500 rows of 2,048 elements, 4.096 MB in all at half of 1 TB/s: 8.192 us of the memory beside the work of ten multiprocessors,
// fifty rows each. Where the two are alike, each holds up the other: 2^(1/3) of one.
TEST(Rates, NormsPayForTheirRows) {
  MemoryCurve curve;
  curve.launch = 1e-6;
  curve.hbm_share = 0.5;
  DevicePeaks device;
  device.hbm = 1e12;
  device.sm_count = 10;
  constexpr double kTraffic = 500 * 2048 * 4.0, kMemory = kTraffic / 0.5e12;
  const auto seconds = [&](const NormRows& rows) { return norm_seconds(curve, device, kTraffic, rows); };
  const NormRows rows{2048, 500};
  EXPECT_NEAR(seconds(rows), 1e-6 + kMemory, 1e-15);
  EXPECT_EQ(seconds({}), memory_seconds(curve, 1e12, kTraffic, 1));  // no rows
  const auto beside = [&](double processors) { return 1e-6 + std::cbrt(std::pow(kMemory, 3) + std::pow(processors, 3)); };
  curve.row_time = kMemory / 50;
  EXPECT_NEAR(seconds(rows), 1e-6 + std::cbrt(2) * kMemory, 1e-12);
  curve.looped_from = 2048;
  EXPECT_NEAR(seconds(rows), 1e-6 + kMemory, 1e-15);  // held in registers
  curve.looped_from = 0;
  curve.element_time = 1e-10;  // 204.8 ns a row
  curve.statistics = 50e-9;
  EXPECT_NEAR(seconds(rows), beside(kMemory + 50 * 204.8e-9), 1e-12);
  EXPECT_NEAR(seconds({2048, 500, true}), beside(kMemory + 50 * 254.8e-9), 1e-12);
  curve.tile = 1500;  // two tiles, 3,000 elements
  EXPECT_NEAR(seconds(rows), beside(kMemory + 50 * 300e-9), 1e-12);
  curve.resident = 20;  // 200 rows at a time: three waves, as long as 600 rows
  curve.wave_rounding = 1;
  EXPECT_NEAR(seconds(rows), beside(1.2 * (kMemory + 50 * 300e-9)), 1e-12);
  curve = MemoryCurve{};
  curve.launch = 1e-6;
  curve.hbm_share = 0.5;
  curve.reread = 0.5;
  curve.kept_row = 1024;  // of 2,048: half of the half is read again
  EXPECT_NEAR(seconds(rows), 1e-6 + 1.25 * kMemory, 1e-12);
  curve.reread = 0;
  curve.column_start = 2e-6;  // 64 blocks of 32 columns on ten multiprocessors: seven waves
  curve.column_row = 4e-9;    // down 500 rows: 2 us more each
  EXPECT_NEAR(seconds(rows), 1e-6 + kMemory + 7 * 4e-6, 1e-12);
}

// A record of before there were forms, and of when rows were given in elements that stream meanwhile: streams as they were.
TEST(Rates, OlderRecordsReadAsTheyWere) {
  constexpr const char* kQuality = "median_error = 0.05\np90_error = 0.1\nevidence = \"fitted\"\nsource = \"s\"\n";
  const std::string text =
      std::string("version = \"old\"\n[[memory]]\ngpu = \"G\"\nkernels = \"cudnn_norm\"\npass = \"forward\"\n") +
      "launch_us = 2\nhbm_share = 0.8\nrow_half = 40\ntraffic_bytes = [1e6, 1e9]\n" + kQuality +
      "[[collective]]\nlink = \"nvlink4\"\nkind = \"all_gather\"\nranks = 8\npieces = [[1024, 1e6, 20, 0.5]]\n" + kQuality;
  const RateTables tables = parse_rate_tables(text).value();
  EXPECT_EQ(tables.collective.at(0).form, CollectiveForm::kUsual);
  EXPECT_DOUBLE_EQ(memory_seconds(tables.memory.at(0).curve, 1e12, 4e6, 1), 2e-6 + 5e-6);
}

TEST(Rates, MessagesPayTheNetworksLatency) {
  const RateSet rates = RateSet::defaults();
  const GpuRates& gpu = rates.of(h100());
  const auto time = [&](double latency, double bytes) {
    return message_time(gpu, LinkClass::kNic, gb_per_s(50), Seconds(latency), Bytes(bytes)).time.value();
  };
  EXPECT_NEAR(time(5e-6, 1e6) - time(0, 1e6), 5e-6, 1e-12);
  EXPECT_GT(overlap_slowdown(gpu, LinkClass::kNvlink), overlap_slowdown(gpu, LinkClass::kNic));
  EXPECT_GT(launch_cost(gpu, false), launch_cost(gpu, true));
}

// Two channels of 14 GB/s serve a peer: a NIC of 200 Gb/s is filled, one of 400 Gb/s is not. On a Grace host chunks of messages
// are twice as long.
TEST(Rates, OnePeerDoesNotFillAFastNic) {
  const RateSet rates = RateSet::defaults();
  const auto attained = [&](const Gpu& gpu, double nic) {
    const auto time = [&](double bytes) {
      return message_time(rates.of(gpu), LinkClass::kNic, gb_per_s(nic), Seconds(0), Bytes(bytes)).time.value();
    };
    return 1e9 / (time(2e9) - time(1e9)) / 1e9;
  };
  EXPECT_NEAR(attained(h100(), 25), 0.95 * 25, 1e-6);
  EXPECT_NEAR(attained(h100(), 50), 2 * 14, 1e-6);
  Gpu grace = h100();
  grace.generation = "blackwell";
  grace.pcie = gb_per_s(450);  // NVLink-C2C
  EXPECT_NEAR(attained(grace, 50), 0.95 * 50, 1e-6);
  EXPECT_NEAR(attained(grace, 100), 4 * 14, 1e-6);
  // Four NICs of 100 Gb/s for a GPU: a channel each.
  const HopNetwork ports{gb_per_s(50), Seconds(0), LinkClass::kNic, 1, 4, true, ""};
  EXPECT_NEAR(
      1e9 /
          (message_time(rates.of(h100()), ports, Bytes(2e9)).time - message_time(rates.of(h100()), ports, Bytes(1e9)).time)
              .value() /
          1e9,
      0.95 * 50, 1e-6);
  // Several peers together fill the link.
  EXPECT_NEAR(attained_by_messages(rates.of(h100()), LinkClass::kNic, gb_per_s(50)).value() / 1e9, 0.95 * 50, 1e-6);
}

// Trees of two domains pass a buffer S once each way where a flat ring of 16 passes 2 x 15/16 S, as far as the GPUs inside keep
// up.
TEST(Rates, AllReduceOverTwoDomainsPassesTheNicsOnce) {
  const RateSet rates = RateSet::defaults();
  GroupNetwork group;
  group.shape = {1, 16};
  group.members_per_domain = 8;
  group.domains = 2;
  group.collective_link = LinkClass::kNic;
  group.collective_rate = gb_per_s(50);  // 4 NICs of 100 Gb/s
  group.inner_hop.rate = gb_per_s(450);
  group.inner_hop.slowest = LinkClass::kNvlink;
  const GpuRates& gpu = rates.of(h100());
  EXPECT_NEAR(bus_rate(gpu, group, CollectiveKind::kAllReduce).value() / 1e9, 50 * 2 * 15.0 / 16, 1e-9);
  EXPECT_EQ(bus_rate(gpu, group, CollectiveKind::kAllGather), group.collective_rate);
  // NICs of 3.2 Tb/s: eight GPUs reduce S at the bus rate they attain, 2 x 7/8 S on their links.
  group.collective_rate = gb_per_s(400);
  const double inside = attained_inside(gpu, LinkClass::kNvlink, gb_per_s(450), 8).value();
  EXPECT_NEAR(bus_rate(gpu, group, CollectiveKind::kAllReduce).value(), inside * (15.0 / 16) / (7.0 / 8), 1.0);
  EXPECT_LT(inside, 500e9);
  // Three domains, one member a domain, a rate that a job measured: the ring's.
  for (const auto change : {+[](GroupNetwork& g) { g.domains = 3; }, +[](GroupNetwork& g) { g.members_per_domain = 1; },
                            +[](GroupNetwork& g) { g.measured = true; }}) {
    GroupNetwork other = group;
    change(other);
    EXPECT_EQ(bus_rate(gpu, other, CollectiveKind::kAllReduce), group.collective_rate);
  }
}

// A kernel alone reaches the power limit as it lasts: half of the loss when it is busy for as long as `sustained`. In a training
// step the GPU is there already.
TEST(Rates, WhatThePowerLimitTakesDependsOnWhatRanBefore) {
  EXPECT_DOUBLE_EQ(sustained_factor(0.2, 10e-3, 10e-3, 0.0), 1.1);
  EXPECT_DOUBLE_EQ(sustained_factor(0.2, 10e-3, 10e-3, 1.0), 1.2);
  EXPECT_DOUBLE_EQ(sustained_factor(0.2, 10e-3, 90e-3, 0.5), 1.18);  // it lasted long enough to be warmer than the step
  EXPECT_DOUBLE_EQ(sustained_factor(0.0, 10e-3, 90e-3, 1.0), 1.0);
}

TEST(Rates, TrainingIsSlowerThanIsolatedKernels) {
  const RateSet rates = RateSet::defaults();
  const GpuRates& gpu = rates.of(h100());
  const TrainingFactors factors = training_factors(gpu, MathKind::kBf16, AttentionLibrary::kCudnn);
  EXPECT_GE(factors.gemm, 1.0);
  EXPECT_GE(factors.attention, 1.0);
  EXPECT_EQ(factors.gemm_warm, 1.0);
  // Short kernels lose most: alone this one is over before the GPU warms up. H100's loss is 17 % of its busy time.
  const GemmShape shape{4096, 4096, 4096};
  const double alone = gemm_time(gpu, shape, MathKind::kBf16).time.value();
  const double inside = gemm_time(gpu, shape, MathKind::kBf16, factors.gemm_warm).time.value();
  EXPECT_GT(inside, 1.10 * alone);
  EXPECT_LT(inside, 1.18 * alone);
  // FP8 products are measured not to be held back further in a step.
  EXPECT_EQ(training_factors(gpu, MathKind::kFp8Tensor, AttentionLibrary::kCudnn).gemm_warm, 0.0);
}

// A message to one GPU of the own domain has two channels per link, a power of two, at most 32, and an SM under each. Links and
// SMs by data sheet; channels as NCCL's logs print them: "16 p2p channels per peer" on V100 and H800, 32 on A100 and H100.
TEST(Rates, MessagesTakeAnSmPerChannelToTheirPeer) {
  const RateSet rates = RateSet::defaults();
  const auto slowdown = [&](const char* gpu) {
    return message_overlap_slowdown(rates.of(find_gpu(gpu).value()), LinkClass::kNvlink);
  };
  EXPECT_DOUBLE_EQ(slowdown("V100-SXM2-32GB"), 80.0 / (80 - 16));
  EXPECT_DOUBLE_EQ(slowdown("H800-SXM5-80GB"), 132.0 / (132 - 16));
  EXPECT_DOUBLE_EQ(slowdown("A100-SXM4-80GB"), 108.0 / (108 - 32));
  EXPECT_DOUBLE_EQ(slowdown("H100-SXM5-80GB"), 132.0 / (132 - 32));
  // Other links, and slowdowns that were measured beside messages, say it themselves.
  const GpuRates& gpu = rates.of(h100());
  EXPECT_EQ(message_overlap_slowdown(gpu, LinkClass::kNic), overlap_slowdown(gpu, LinkClass::kNic));
  RateTables measured;
  OverlapRow row;
  row.link = "nvlink";
  row.slowdown = 1.5;
  measured.overlap = {row};
  const RateTables shipped = parse_rate_tables(embedded_file("presets/rates.toml")).value();
  EXPECT_EQ(message_overlap_slowdown(assemble_gpu_rates(overlaid(shipped, measured), find_gpu("H100-SXM5-80GB").value()),
                                     LinkClass::kNvlink),
            1.5);
}

TEST(Rates, ProblemsNameTableRowAndKey) {
  const Outcome<RateTables> tables = parse_rate_tables(
      "version = \"1\"\n[[overlap]]\nlink = \"nic\"\nmedian_error = 0\np90_error = 0\nevidence = \"guessed\"\nsource = \"\"\n");
  ASSERT_FALSE(tables.ok());
  std::vector<std::string> places;
  for (const Problem& problem : tables.problems()) places.push_back(problem.where);
  EXPECT_THAT(places, testing::UnorderedElementsAre("overlap[0].slowdown", "overlap[0].evidence"));
  EXPECT_EQ(parse_rate_tables("version = ").problems().front().code, "rates.syntax");
  EXPECT_EQ(RateSet::parse("version = \"1\"\n").problems().front().code, "rates.incomplete");
}

TEST(Rates, WhatIsNoCountOrNotFiniteIsAProblem) {
  const std::string row =
      "version = \"1\"\n[[overlap]]\nlink = \"nic\"\nslowdown = 1\nmedian_error = 0\np90_error = 0\nevidence = "
      "\"assumed\"\nsource = \"\"\n";
  EXPECT_TRUE(parse_rate_tables(row + "rows = 12\n").ok());
  for (const char* rows : {"nan", "inf", "-1", "2.5", "1e300"}) {
    const Outcome<RateTables> tables = parse_rate_tables(row + "rows = " + rows + "\n");
    ASSERT_FALSE(tables.ok()) << rows;
    EXPECT_EQ(tables.problems().front().where, "overlap[0].rows") << rows;
  }
}

TEST(Rates, PiecesAreJoinedInLogarithms) {
  CollectiveCurve curve;
  curve.ranks = 2;
  curve.piece_count = 2;
  curve.pieces[0] = {1024, 4096, 10e-6, 1e6};
  curve.pieces[1] = {16384, 1 << 20, 40e-6, 1e6};
  EXPECT_NEAR(collective_seconds(curve, CollectiveKind::kSendRecv, 1e11, 4096), 10e-6, 1e-9);
  EXPECT_NEAR(collective_seconds(curve, CollectiveKind::kSendRecv, 1e11, 8192), 20e-6, 1e-8);  // half way in logarithms
  EXPECT_NEAR(collective_seconds(curve, CollectiveKind::kSendRecv, 1e11, 16384), 40e-6, 1e-9);
}

Gpu a100() {
  Gpu gpu = h100();
  gpu.name = "A100-SXM4-80GB";
  gpu.generation = "ampere";
  gpu.hbm = gb_per_s(2039);
  gpu.bf16 = gpu.fp16 = tflops(312);
  gpu.fp8 = {};
  gpu.sm_count = 108;
  gpu.scale_up_link = "nvlink3";
  return gpu;
}

TEST(AttentionRates, ShortHeadsGoOnBelow64AsFrom128To64) {
  const RateSet defaults = RateSet::defaults();
  const GpuRates& rates = defaults.of(a100());
  AttentionShape shape = causal(32768, 32);
  const auto speed = [&](std::int64_t d) {
    shape.head_dim = d;
    return attained(shape, AttentionPass::kForward,
                    attention_time(rates, shape, AttentionPass::kForward, AttentionLibrary::kFlash2));
  };
  // Halfway from 128 to 64 the speed falls by as much as from 64 to 32; kernels of this length differ by their rate alone.
  EXPECT_NEAR((speed(64) - speed(32)) / (speed(128) - speed(64)), 0.5, 0.03);
  EXPECT_LT(speed(8), speed(32));
}

TEST(AttentionRates, SlowTensorCoresWaitLessForExponentials) {
  // An L20 has 32 FLOP of its tensor cores per exponential (119.5 TFLOP/s, 92 multiprocessors, 2.52 GHz, 16 a clock), an A100
  // 128. Of A100's share s_64 of the speed at 128 follows the softmax's part c of d + c, and a quarter of it is left.
  Gpu l20 = a100();
  l20.name = "L20";
  l20.generation = "ada";
  l20.bf16 = l20.fp16 = tflops(119.5);
  l20.sm_count = 92;
  const std::size_t forward = attention_index(MathKind::kBf16, AttentionLibrary::kFlash2, AttentionPass::kForward);
  const RateSet defaults = RateSet::defaults();
  const AttentionCurve from = defaults.of(a100()).attention[forward].curve, to = defaults.of(l20).attention[forward].curve;
  const double softmax = 128 * (1 - from.share_64) / (2 * from.share_64 - 1);
  const double balance = (119.5e12 / (92 * 2.52e9 * 16)) / (312e12 / (108 * 1.41e9 * 16));
  EXPECT_NEAR(to.peak_share, from.peak_share * (128 + softmax) / (128 + softmax * balance), 1e-9);
  EXPECT_GT(to.share_64, from.share_64);
}

TEST(RatesOfLinks, AGpuHasOnlyItsOwn) {
  const auto has = [](const char* scale_up, const char* link) {
    Gpu gpu;
    gpu.scale_up_link = scale_up;
    const std::vector<std::string> links = links_of(gpu);
    return std::find(links.begin(), links.end(), link) != links.end();
  };
  EXPECT_TRUE(has("nvlink4", "nvlink4"));
  EXPECT_FALSE(has("nvlink4", "xgmi3"));
  EXPECT_TRUE(has("xgmi3", "xgmi3"));
  EXPECT_FALSE(has("xgmi3", "nvlink4")) << "what was measured over NVLink says nothing of it";
  EXPECT_FALSE(has("", "nvlink4"));
  EXPECT_TRUE(has("", "nic"));
}

}  // namespace
}  // namespace cpfit
