// Bytes and messages that leave each rank, against the master table of the public implementations (cp_model.md A.1). A gather, a
// reduce-scatter and an all-to-all over n ranks are n - 1 messages here.
#include "tests/kernels/strategy/sharded_attention.h"

namespace cpfit::kernels {
namespace {

constexpr std::int64_t kTokens = 96;          // of the sequence; divides by 2 * cp for cp 2, 3, 4, 8
const Heads kHeads = heads_of(24, 24, 8, 6);  // one KV head for every query head: a degree of 2, 3, 4 or 8 divides them

/// One rank's shard in bytes, 16-bit numbers; sums of fp32.
struct ShardBytes {
  std::int64_t query = 0, out = 0, kv = 0, kv4 = 0;
};
ShardBytes shard_bytes(std::int32_t cp) {
  const std::int64_t rows = kTokens / cp;
  const std::int64_t kv = rows * kHeads.kv * (kHeads.qk_dim + kHeads.v_dim);
  return {2 * rows * kHeads.q * kHeads.qk_dim, 2 * rows * kHeads.q * kHeads.v_dim, 2 * kv, 4 * kv};
}

void expect_traffic(const Method& method, std::int32_t cp, const RankTraffic& wanted) {
  ShardedLayer sharded = sharded_layer("", kHeads, {attention::MaskShape::kCausal, 0, {}}, kTokens, cp);
  sharded.layer.number = Number::kBf16;
  ASSERT_EQ(why_not(method, sharded.layer, cp), "") << method.name;
  for (const RankTraffic& rank : run_layer(method, sharded.layer, Number::kFp32, layer_tensors(sharded.layer, 7)).traffic) {
    EXPECT_EQ(rank.forward.messages, wanted.forward.messages) << method.name << " cp " << cp << " forward";
    EXPECT_EQ(rank.forward.bytes, wanted.forward.bytes) << method.name << " cp " << cp << " forward";
    EXPECT_EQ(rank.backward.messages, wanted.backward.messages) << method.name << " cp " << cp << " backward";
    EXPECT_EQ(rank.backward.bytes, wanted.backward.bytes) << method.name << " cp " << cp << " backward";
  }
}

class Traffic : public testing::TestWithParam<std::int32_t> {};

TEST_P(Traffic, TransformerEngineRing) {
  const std::int32_t cp = GetParam();
  const ShardBytes shard = shard_bytes(cp);
  expect_traffic(method_named("te_p2p"), cp, {{cp - 1, (cp - 1) * shard.kv}, {cp, 2 * (cp - 1) * shard.kv}});
  // Kept in fp32 the dKV of cp - 1 hops doubles, and travels beside the KV: cp - 1 messages of each.
  expect_traffic(method_named("te_p2p_wide"), cp,
                 {{cp - 1, (cp - 1) * shard.kv}, {2 * (cp - 1), (cp - 1) * (shard.kv + shard.kv4)}});
}

TEST_P(Traffic, RingWhoseDkvComesHome) {
  const std::int32_t cp = GetParam();
  const ShardBytes shard = shard_bytes(cp);
  expect_traffic(method_named("fp32_ring"), cp,
                 {{2 * (cp - 1), (cp - 1) * shard.kv}, {2 * (cp - 1) + 2 * cp, (cp - 1) * shard.kv + cp * shard.kv4}});
}

TEST_P(Traffic, AllGather) {
  const std::int32_t cp = GetParam();
  const ShardBytes shard = shard_bytes(cp);
  expect_traffic(method_named("all_gather"), cp, {{2 * (cp - 1), (cp - 1) * shard.kv}, {4 * (cp - 1), 2 * (cp - 1) * shard.kv}});
}

TEST_P(Traffic, AllToAll) {
  const std::int32_t cp = GetParam();
  const ShardBytes shard = shard_bytes(cp);
  const std::int64_t bytes = (shard.query + shard.out + shard.kv) / cp * (cp - 1);
  expect_traffic(method_named("a2a"), cp, {{4 * (cp - 1), bytes}, {4 * (cp - 1), bytes}});
}

TEST_P(Traffic, AllToAllWithRing) {
  const std::int32_t cp = GetParam();
  const ShardBytes shard = shard_bytes(cp);
  for (std::int32_t u = 2; u <= cp; ++u) {
    if (cp % u != 0) continue;
    const std::int64_t r = cp / u;
    const std::int64_t exchanged = (shard.query + shard.out + shard.kv) / u * (u - 1);
    Method te = method_named("a2a_p2p");
    te.a2a_degree = u;
    expect_traffic(te, cp,
                   {{4 * (u - 1) + r - 1, exchanged + (r - 1) * shard.kv},
                    {4 * (u - 1) + (r > 1 ? r : 0), exchanged + 2 * (r - 1) * shard.kv}});
    Method usp = method_named("usp");
    usp.a2a_degree = u;
    const std::int64_t home = r > 1 ? r : 0;
    expect_traffic(usp, cp,
                   {{4 * (u - 1) + 2 * (r - 1), exchanged + (r - 1) * shard.kv},
                    {4 * (u - 1) + 2 * (r - 1) + 2 * home, exchanged + (r - 1) * shard.kv + home * shard.kv4}});
  }
}

TEST_P(Traffic, DoubleRing) {
  const std::int32_t cp = GetParam();
  const ShardBytes shard = shard_bytes(cp);
  for (std::int32_t w = 1; w <= cp; ++w) {
    if (cp % w != 0) continue;
    const std::int64_t windows = cp / w;
    const std::int64_t kv_hops = windows * (w - 1) + windows - 1;
    Method method = method_named("double_ring");
    method.window = w;
    expect_traffic(method, cp,
                   {{2 * kv_hops, kv_hops * shard.kv},
                    {2 * (kv_hops + cp), kv_hops * shard.kv + w * shard.kv4 + (windows - 1) * w * shard.kv}});
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Traffic, testing::Values(2, 3, 4, 8), testing::PrintToStringParamName());

TEST(TrafficOfRepeatedHeads, KvGrowsByTheRepeats) {
  // 4 ranks, 2 KV heads: each goes to 2 of them, so KV takes part in the exchange twice (HF/ALST).
  ShardedLayer sharded = sharded_layer("", heads_of(8, 2, 8, 8), {attention::MaskShape::kCausal, 0, {}}, 64, 4);
  sharded.layer.number = Number::kBf16;
  const std::int64_t query = 2 * 16 * 8 * 8;
  const std::int64_t kv = 2 * 16 * 2 * (8 + 8);
  const LayerRun run = run_layer(method_named("a2a_repeat_kv"), sharded.layer, Number::kFp32, layer_tensors(sharded.layer, 7));
  for (const RankTraffic& rank : run.traffic) EXPECT_EQ(rank.forward.bytes, (2 * query + 2 * kv) / 4 * 3);
}

}  // namespace
}  // namespace cpfit::kernels
