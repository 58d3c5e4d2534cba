// What is simulated is what is proved: the kernels that every rank launches, step by step, are those of model/attention's work
// counts, which the simulator times: the same pairs in the same order, and nothing where there are none.
#include "model/attention/packed_work.h"
#include "model/attention/ring_work.h"
#include "tests/kernels/strategy/sharded_attention.h"
#include "tests/kernels/strategy/watching_operators.h"

namespace cpfit::kernels {
namespace {

using attention::BlockKind;
using attention::StepWork;

const Heads kHeads = heads_of(12, 12, 4, 4);  // 1, 2, 3 or 4 ranks can trade them

struct WatchedRank {
  std::vector<LaunchedKernel> forwards, backwards;
};

std::vector<WatchedRank> watch(const Method& method, const Layer& layer) {
  const auto ranks = static_cast<std::size_t>(layer.queries.cp);
  std::vector<std::unique_ptr<WatchingOperators>> watching(ranks);
  (void)run_layer(method, layer, Number::kFp64, layer_tensors(layer), [&](std::int32_t rank, Operators& own) -> Operators& {
    watching[static_cast<std::size_t>(rank)] = std::make_unique<WatchingOperators>(own);
    return *watching[static_cast<std::size_t>(rank)];
  });
  std::vector<WatchedRank> watched;
  for (const auto& operators : watching) watched.push_back({operators->forwards, operators->backwards});
  return watched;
}

attention::Shard shard_of(const Cut& cut) { return {cut.layout, cut.tokens, cut.cp}; }
attention::PackedShard packed_of(const Layer& layer) {
  return {layer.mask.documents.data(), static_cast<std::int32_t>(layer.mask.documents.size()), layer.queries.cp};
}

StepWork simulated_step(const Layer& layer, std::int32_t rank, std::int32_t owner) {
  return layer.queries.per_document ? attention::packed_step(packed_of(layer), layer.mask.window, rank, owner)
                                    : attention::ring_step(shard_of(layer.queries), layer.mask.view(), rank, owner);
}

/// `exact_shape`: rectangles and kinds too. A varlen call over documents is launched as all of both shards.
void expect_same(const std::vector<LaunchedKernel>& launched, const std::vector<attention::Kernel>& simulated, bool exact_shape,
                 const std::string& where) {
  ASSERT_EQ(launched.size(), simulated.size()) << where;
  for (std::size_t i = 0; i < launched.size(); ++i) {
    EXPECT_EQ(static_cast<double>(launched[i].pairs), simulated[i].pairs) << where << ", kernel " << i;
    if (!exact_shape) continue;
    EXPECT_EQ(launched[i].q_len, simulated[i].q_len) << where << ", kernel " << i;
    EXPECT_EQ(launched[i].kv_len, simulated[i].kv_len) << where << ", kernel " << i;
    EXPECT_EQ(launched[i].kind, simulated[i].kind) << where << ", kernel " << i;
  }
}

using OwnerOfStep = std::function<std::int32_t(std::int32_t rank, std::int32_t step)>;

std::vector<attention::Kernel> simulated_ring(const Layer& layer, std::int32_t rank, const OwnerOfStep& owner_of) {
  std::vector<attention::Kernel> kernels;
  for (std::int32_t step = 0; step < layer.queries.cp; ++step) {
    const StepWork work = simulated_step(layer, rank, owner_of(rank, step));
    kernels.insert(kernels.end(), work.kernel, work.kernel + work.count);
  }
  return kernels;
}

class LaunchedWork : public testing::TestWithParam<std::int32_t> {
 protected:
  void compare_rings(const Method& method, const OwnerOfStep& forward, const OwnerOfStep& backward) {
    const std::int32_t cp = GetParam();
    for (const ShardedLayer& sharded : sharded_layers(cp, kHeads)) {
      const Layer& layer = sharded.layer;
      if (layer.queries.tokens != layer.keys.tokens) continue;  // the simulator has self attention only
      const std::vector<WatchedRank> ranks = watch(method, layer);
      for (std::int32_t rank = 0; rank < cp; ++rank) {
        const WatchedRank& watched = ranks[static_cast<std::size_t>(rank)];
        const std::string where = method.name + ", " + sharded.name + ", rank " + std::to_string(rank);
        const bool exact = !layer.queries.per_document;
        expect_same(watched.forwards, simulated_ring(layer, rank, forward), exact, where + " forward");
        expect_same(watched.backwards, simulated_ring(layer, rank, backward), exact, where + " backward");
      }
    }
  }
};

TEST_P(LaunchedWork, OfBothRings) {
  const std::int32_t cp = GetParam();
  const OwnerOfStep ring = [cp](std::int32_t rank, std::int32_t step) { return attention::ring_owner(cp, rank, step); };
  // TransformerEngine's backward begins with the next rank's KV and turns the other way.
  const OwnerOfStep reversed = [cp](std::int32_t rank, std::int32_t step) { return (rank + 1 + step) % cp; };
  compare_rings(method_named("fp32_ring"), ring, ring);
  compare_rings(method_named("te_p2p"), ring, reversed);
}

TEST_P(LaunchedWork, OfTheDoubleRing) {
  const std::int32_t cp = GetParam();
  for (std::int32_t window = 1; window <= cp; ++window) {
    if (cp % window != 0) continue;
    Method method = method_named("double_ring");
    method.window = window;
    const OwnerOfStep owner = [&](std::int32_t rank, std::int32_t step) {
      return attention::double_ring_owner(cp, window, rank, step);
    };
    compare_rings(method, owner, owner);
  }
}

TEST_P(LaunchedWork, OfTheAllGather) {
  const std::int32_t cp = GetParam();
  for (const ShardedLayer& sharded : sharded_layers(cp, kHeads)) {
    const Layer& layer = sharded.layer;
    if (layer.queries.tokens != layer.keys.tokens) continue;
    const std::vector<WatchedRank> ranks = watch(method_named("all_gather"), layer);
    for (std::int32_t rank = 0; rank < cp; ++rank) {
      const WatchedRank& watched = ranks[static_cast<std::size_t>(rank)];
      StepWork work = layer.queries.per_document ? attention::packed_all_gather(packed_of(layer), layer.mask.window, rank)
                                                 : attention::all_gather(shard_of(layer.queries), layer.mask.view(), rank);
      const std::string where = sharded.name + ", rank " + std::to_string(rank);
      std::vector<attention::Kernel> simulated(work.kernel, work.kernel + work.count);
      if (layer.queries.per_document && work.count == 2) {  // both chunk indices are one launch here
        simulated[0].pairs += simulated[1].pairs;
        simulated.pop_back();
      }
      const bool exact = !layer.queries.per_document;
      expect_same(watched.forwards, simulated, exact, where + " forward");
      expect_same(watched.backwards, simulated, exact, where + " backward");
    }
  }
}

TEST_P(LaunchedWork, OfTheAllToAllIsTheWholeSequence) {
  const std::int32_t cp = GetParam();
  for (const ShardedLayer& sharded : sharded_layers(cp, kHeads)) {
    const Layer& layer = sharded.layer;
    if (layer.queries.tokens != layer.keys.tokens) continue;
    const StepWork work = attention::whole_sequence(layer.mask.view(), layer.queries.tokens);
    const std::vector<attention::Kernel> simulated(work.kernel, work.kernel + work.count);
    for (const WatchedRank& watched : watch(method_named("a2a"), layer)) {
      expect_same(watched.forwards, simulated, true, sharded.name);
      expect_same(watched.backwards, simulated, true, sharded.name);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, LaunchedWork, testing::Values(1, 2, 3, 4), testing::PrintToStringParamName());

TEST(LaunchedWorkCounts, AContiguousRingLaunchesOnlyWhatIsBehindIt) {
  // Rank r of a causal contiguous ring computes r + 1 of the cp steps (cp_model.md A.3).
  const ShardedLayer sharded =
      sharded_layer("", kHeads, {attention::MaskShape::kCausal, 0, {}}, 40, 4, attention::Layout::kContiguous);
  const std::vector<WatchedRank> ranks = watch(method_named("fp32_ring"), sharded.layer);
  for (std::size_t rank = 0; rank < 4; ++rank) EXPECT_EQ(ranks[rank].forwards.size(), rank + 1);
}

TEST(LaunchedWorkCounts, ZigzagStepsAreHalvesWithoutAMask) {
  // 4 ranks, 80 tokens: 20 a rank. Rank 1: its diagonal, then owners 0 (20 x 10), 3 and 2 (10 x 20 each).
  const ShardedLayer sharded = sharded_layer("", kHeads, {attention::MaskShape::kCausal, 0, {}}, 80, 4);
  const std::vector<LaunchedKernel> launched = watch(method_named("te_p2p"), sharded.layer)[1].forwards;
  ASSERT_EQ(launched.size(), 4U);
  EXPECT_EQ(launched[0].kind, BlockKind::kCausal);
  EXPECT_EQ(launched[0].pairs, 20 * 21 / 2);
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(launched[i].kind, BlockKind::kFull);
    EXPECT_EQ(launched[i].q_len, i == 1 ? 20 : 10);
    EXPECT_EQ(launched[i].kv_len, i == 1 ? 10 : 20);
    EXPECT_EQ(launched[i].pairs, 200);
  }
}

}  // namespace
}  // namespace cpfit::kernels
