// Every strategy on every mask and cut, over 1, 2, 3, 4 and 8 ranks, against the unsharded truth; what they may not do is refused
// with a reason; strategies that are the same by construction give the same bits.
#include <gmock/gmock.h>

#include "tests/kernels/strategy/sharded_attention.h"

namespace cpfit::kernels {
namespace {

using attention::Layout;
using attention::MaskShape;
using testing::HasSubstr;

const Heads kHeads = heads_of(8, 2, 8, 6);  // grouped, d_qk != d_v

/// Every method with every degree that divides cp, as far as it can run the layer. Those that differ only in the type of their
/// sums are one method where inputs and sums have one type.
std::vector<Method> able_methods(const Layer& layer, Number sum) {
  const std::int32_t cp = layer.queries.cp;
  std::vector<Method> able;
  for (const Method& named : methods()) {
    const bool twin = named.name == "te_p2p_wide" || named.name == "narrow_ring" || named.name == "all_gather_wide" ||
                      named.name == "double_ring_wide";
    if (twin && layer.number == sum) continue;
    const bool exchange = named.exchange == Exchange::kAllToAllRing;
    const bool windows = named.exchange == Exchange::kDoubleRing;
    for (std::int32_t inner = 1; inner <= (exchange || windows ? cp : 1); ++inner) {
      Method method = named;
      if (exchange) method.a2a_degree = inner;
      if (windows) method.window = inner;
      if (why_not(method, layer, cp).empty()) able.push_back(method);
    }
  }
  return able;
}

void expect_truth(const ShardedLayer& sharded, Number sum, double bound) {
  const Layer& layer = sharded.layer;
  const ProblemTensors tensors = layer_tensors(layer);
  const LayerResult truth = true_layer(layer, tensors);
  const std::vector<Method> able = able_methods(layer, sum);
  const std::vector<LayerRun> runs = run_methods(able, layer, sum, tensors);
  for (std::size_t i = 0; i < able.size(); ++i) {
    const LayerErrors errors = layer_errors(runs[i].result, truth, layer.heads);
    EXPECT_LE(errors.largest(), bound) << able[i].name << ", degree " << able[i].a2a_degree << ", window " << able[i].window
                                       << ", " << sharded.name << ", cp " << layer.queries.cp << ", " << name_of(layer.number)
                                       << ": out " << errors.out << " lse " << errors.lse << " dq " << errors.dq << " dk "
                                       << errors.dk << " dv " << errors.dv;
  }
}

class EveryStrategy : public testing::TestWithParam<std::int32_t> {};

TEST_P(EveryStrategy, AgreesWithTheTruthInFp64) {
  for (const ShardedLayer& sharded : sharded_layers(GetParam(), kHeads)) expect_truth(sharded, Number::kFp64, 1e-12);
}

TEST_P(EveryStrategy, AgreesWithTheTruthInFp32) {
  std::vector<ShardedLayer> layers = sharded_layers(GetParam(), kHeads);
  if (GetParam() > 4) layers.resize(5);  // the zigzag ones: the texts are those of fp64
  for (ShardedLayer& sharded : layers) {
    sharded.layer.number = Number::kFp32;
    expect_truth(sharded, Number::kFp32, 1e-5);
  }
}

TEST(EveryStrategyMixed, AgreesWithTheTruthWhenSumsAreWiderThanInputs) {
  for (ShardedLayer& sharded : sharded_layers(4, kHeads)) {
    sharded.layer.number = Number::kFp32;
    expect_truth(sharded, Number::kFp64, 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, EveryStrategy, testing::Values(1, 2, 3, 4, 8), testing::PrintToStringParamName());

TEST(Strategy, EveryMethodRunsSomethingSharded) {
  const ShardedLayer causal = sharded_layer("", kHeads, {MaskShape::kCausal, 0, {}}, 64, 2);
  for (const Method& method : methods()) EXPECT_EQ(why_not(method, causal.layer, 2), "") << method.name;
}

TEST(Strategy, SumsInSixteenBitsAreWorseThanWideOnesAndBounded) {
  // Each of the cp adds rounds to 8 bits: an error of at most cp * 2^-8 of the sum of sizes (cp_model.md E.6).
  ShardedLayer sharded = sharded_layer("", heads_of(4, 2, 16, 16), {MaskShape::kCausal, 0, {}}, 256, 8);
  sharded.layer.number = Number::kBf16;
  const ProblemTensors tensors = layer_tensors(sharded.layer, 7);
  const LayerResult truth = true_layer(sharded.layer, tensors);
  const auto errors = [&](const char* name) {
    return layer_errors(run_layer(method_named(name), sharded.layer, Number::kFp32, tensors).result, truth, sharded.layer.heads);
  };
  const LayerErrors narrow = errors("te_p2p");
  const LayerErrors wide = errors("te_p2p_wide");
  EXPECT_LT(narrow.largest(), 8.0 / 256);
  EXPECT_LT(wide.largest(), 0.02);
  EXPECT_GT(narrow.out, wide.out);
  EXPECT_GT(narrow.dk, wide.dk);
  EXPECT_GT(narrow.dv, wide.dv);
  EXPECT_GT(errors("double_ring").dk, errors("double_ring_wide").dk);
}

// --- identities

ShardedLayer causal_in_bf16(std::int32_t cp) {
  ShardedLayer sharded = sharded_layer("", kHeads, {MaskShape::kCausal, 0, {}}, 16 * cp, cp);
  sharded.layer.number = Number::kBf16;
  return sharded;
}

LayerResult bits_of(const Method& method, const ShardedLayer& sharded) {
  return run_layer(method, sharded.layer, Number::kFp32, layer_tensors(sharded.layer, 7)).result;
}

TEST(StrategyIdentity, AHierarchyOfDegreeOneIsTheRing) {
  Method hierarchy = method_named("a2a_p2p");
  hierarchy.a2a_degree = 1;
  EXPECT_EQ(bits_of(hierarchy, causal_in_bf16(4)), bits_of(method_named("te_p2p"), causal_in_bf16(4)));
  Method usp = method_named("usp");
  usp.a2a_degree = 1;
  EXPECT_EQ(bits_of(usp, causal_in_bf16(4)), bits_of(method_named("fp32_ring"), causal_in_bf16(4)));
}

TEST(StrategyIdentity, AHierarchyWithoutARingIsTheAllToAll) {
  Method hierarchy = method_named("a2a_p2p");
  hierarchy.a2a_degree = 2;
  EXPECT_EQ(bits_of(hierarchy, causal_in_bf16(2)), bits_of(method_named("a2a"), causal_in_bf16(2)));
}

TEST(StrategyIdentity, ADoubleRingOfOneWindowIsTheRingWhoseDkvComesHome) {
  for (const auto& [double_ring, ring] : {std::pair("double_ring_wide", "fp32_ring"), std::pair("double_ring", "fp32_ring")}) {
    Method method = method_named(double_ring);
    method.window = 4;
    EXPECT_EQ(bits_of(method, causal_in_bf16(4)), bits_of(method_named(ring), causal_in_bf16(4)));
  }
}

TEST(StrategyIdentity, WindowsOfOneRankAreTheRingToo) {
  Method method = method_named("double_ring_wide");
  method.window = 1;
  EXPECT_EQ(bits_of(method, causal_in_bf16(4)), bits_of(method_named("fp32_ring"), causal_in_bf16(4)));
}

TEST(StrategyIdentity, ARunRepeatsItselfBitForBit) {
  for (const Method& method : methods()) {
    EXPECT_EQ(bits_of(method, causal_in_bf16(2)), bits_of(method, causal_in_bf16(2))) << method.name;
  }
}

// --- refusals

TEST(StrategyRefusal, HeadsThatDoNotDivide) {
  const ShardedLayer sharded = sharded_layer("", heads_of(8, 2, 8, 8), {MaskShape::kCausal, 0, {}}, 64, 4);
  EXPECT_THAT(why_not(method_named("a2a"), sharded.layer, 4), HasSubstr("2 KV heads do not divide by 4"));
  EXPECT_EQ(why_not(method_named("a2a_repeat_kv"), sharded.layer, 4), "");
  const ShardedLayer odd = sharded_layer("", heads_of(6, 2, 8, 8), {MaskShape::kCausal, 0, {}}, 64, 4);
  EXPECT_THAT(why_not(method_named("a2a_repeat_kv"), odd.layer, 4), HasSubstr("6 query heads do not divide by 4"));
  const ShardedLayer three = sharded_layer("", heads_of(6, 3, 8, 8), {MaskShape::kCausal, 0, {}}, 48, 2);
  EXPECT_THAT(why_not(method_named("a2a_repeat_kv"), three.layer, 2), HasSubstr("one must divide the other"));
}

TEST(StrategyRefusal, RanksThatDoNotDivide) {
  Method method = method_named("double_ring");
  method.window = 3;
  const ShardedLayer sharded = sharded_layer("", kHeads, {MaskShape::kCausal, 0, {}}, 64, 4);
  EXPECT_THAT(why_not(method, sharded.layer, 4), HasSubstr("4 ranks do not divide into windows of 3"));
  Method hierarchy = method_named("a2a_p2p");
  hierarchy.a2a_degree = 3;
  EXPECT_THAT(why_not(hierarchy, sharded.layer, 4), HasSubstr("groups of 3"));
  EXPECT_THAT(why_not(method_named("te_p2p"), sharded.layer, 2), HasSubstr("there are 2"));
}

TEST(StrategyRefusal, StripesUnderAHierarchyAndLengthsThatDoNotDivide) {
  const ShardedLayer striped = sharded_layer("", kHeads, {MaskShape::kCausal, 0, {}}, 64, 4, Layout::kStriped);
  EXPECT_THAT(why_not(method_named("a2a_p2p"), striped.layer, 4), HasSubstr("cut zigzag or contiguous"));
  const ShardedLayer odd = sharded_layer("", kHeads, {MaskShape::kCausal, 0, {}}, 63, 4);
  EXPECT_THAT(why_not(method_named("te_p2p"), odd.layer, 4), HasSubstr("pad to 64"));
}

TEST(StrategyRefusal, AFaultThatHasNothingToSpoil) {
  Method method = method_named("all_gather");
  method.fault = Fault::kDkvOneHopShort;
  const ShardedLayer sharded = sharded_layer("", kHeads, {MaskShape::kCausal, 0, {}}, 64, 4);
  EXPECT_THAT(why_not(method, sharded.layer, 4), HasSubstr("needs a ring"));
}

}  // namespace
}  // namespace cpfit::kernels
