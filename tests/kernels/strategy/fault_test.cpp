// Every planted fault of the attention is seen: on a fitting case the result is wrong by orders more than a correct run's, and
// the tensors that it spoils are those that it would.
#include "tests/kernels/strategy/sharded_attention.h"

namespace cpfit::kernels {
namespace {

using attention::Layout;
using attention::MaskShape;

const Heads kHeads = heads_of(4, 2, 8, 8);
constexpr double kCaught = 1e-3;  // a correct run in fp64 stays under 1e-12

LayerErrors errors_with(const std::string& name, Fault fault, const ShardedLayer& sharded, double size = 1) {
  Method method = method_named(name);
  method.fault = fault;
  EXPECT_EQ(why_not(method, sharded.layer, sharded.layer.queries.cp), "") << name;
  ProblemTensors tensors = layer_tensors(sharded.layer);
  for (double& value : tensors.q) value *= size;
  const LayerResult truth = true_layer(sharded.layer, tensors);
  return layer_errors(run_layer(method, sharded.layer, sharded.layer.number, tensors).result, truth, kHeads);
}

ShardedLayer causal(std::int32_t cp, Layout layout = Layout::kZigzag) {
  return sharded_layer("causal", kHeads, {MaskShape::kCausal, 0, {}}, 16 * cp, cp, layout);
}

/// Documents with real lengths that divide by nothing, one by one.
ShardedLayer documents(std::int32_t cp) {
  const Mask mask = documents_of({2 * cp + 1, 5, 4 * cp - 1}, 2 * cp);
  return sharded_layer("documents", kHeads, mask, tokens_of(mask), cp, Layout::kZigzag, true);
}

const std::vector<std::string> kRings = {"te_p2p", "te_p2p_wide", "fp32_ring", "double_ring", "a2a_p2p", "usp"};

TEST(PlantedFault, SeamOffByOne) {
  for (const std::string& name : kRings) {
    for (const Layout layout : {Layout::kZigzag, Layout::kContiguous}) {
      EXPECT_GT(errors_with(name, Fault::kSeamOffByOne, causal(4, layout)).out, kCaught) << name;
    }
  }
  EXPECT_GT(errors_with("fp32_ring", Fault::kSeamOffByOne, causal(4, Layout::kStriped)).out, kCaught);
  EXPECT_GT(errors_with("all_gather", Fault::kSeamOffByOne, causal(4)).out, kCaught);
  EXPECT_GT(errors_with("fp32_ring", Fault::kSeamOffByOne, documents(4)).out, kCaught);
}

TEST(PlantedFault, MaskShiftedByBlock) {
  for (const std::string& name : kRings) EXPECT_GT(errors_with(name, Fault::kMaskShiftedByBlock, causal(4)).out, kCaught) << name;
  EXPECT_GT(errors_with("all_gather", Fault::kMaskShiftedByBlock, causal(4)).out, kCaught);
  EXPECT_GT(errors_with("fp32_ring", Fault::kMaskShiftedByBlock, documents(4)).out, kCaught);
}

TEST(PlantedFault, PermutationNotInverted) {
  // With two zigzag ranks the chunks 0 3 | 1 2 come back as 0 2 3 1, not as 0 1 2 3.
  for (const Method& method : methods()) {
    if (!why_not(method, causal(2).layer, 2).empty()) continue;
    const LayerErrors errors = errors_with(method.name, Fault::kPermutationNotInverted, causal(2));
    for (const double error : {errors.out, errors.lse, errors.dq, errors.dk, errors.dv}) EXPECT_GT(error, kCaught) << method.name;
  }
}

TEST(PlantedFault, MergeThroughExp) {
  // exp(lse) overflows double from 709 on: scores of a thousand and more.
  for (const std::string& name : kRings) {
    const LayerErrors errors = errors_with(name, Fault::kMergeThroughExp, causal(4), 400);
    EXPECT_FALSE(errors.largest() <= kCaught) << name;
    EXPECT_LT(errors_with(name, Fault::kNone, causal(4), 400).largest(), 1e-9) << name;
  }
  // With small scores nobody would notice: why the suite needs large ones.
  EXPECT_LT(errors_with("fp32_ring", Fault::kMergeThroughExp, causal(4)).largest(), 1e-12);
}

TEST(PlantedFault, DkvOneHopShort) {
  for (const std::string& name : kRings) {
    const LayerErrors errors = errors_with(name, Fault::kDkvOneHopShort, causal(4));
    EXPECT_GT(errors.dk, kCaught) << name;
    EXPECT_GT(errors.dv, kCaught) << name;
    EXPECT_LT(std::max({errors.out, errors.lse, errors.dq}), 1e-12) << name;
  }
}

TEST(PlantedFault, KvOfStepZeroLeavesTheForwardPassHealthy) {
  for (const std::string& name : kRings) {
    const LayerErrors errors = errors_with(name, Fault::kKvOfStepZero, causal(4));
    EXPECT_GT(errors.dq, kCaught) << name;
    EXPECT_GT(errors.dk, kCaught) << name;
    EXPECT_LT(std::max(errors.out, errors.lse), 1e-12) << name;
  }
}

TEST(PlantedFault, LengthFloored) {
  for (const std::string& name : kRings) EXPECT_GT(errors_with(name, Fault::kLengthFloored, documents(4)).out, kCaught) << name;
  EXPECT_GT(errors_with("all_gather", Fault::kLengthFloored, documents(4)).out, kCaught);
}

TEST(PlantedFault, PaddedKeyAttended) {
  for (const std::string& name : kRings) {
    EXPECT_GT(errors_with(name, Fault::kPaddedKeyAttended, documents(4)).out, kCaught) << name;
  }
  EXPECT_GT(errors_with("a2a", Fault::kPaddedKeyAttended, documents(2)).out, kCaught);
  EXPECT_GT(errors_with("all_gather", Fault::kPaddedKeyAttended, documents(4)).out, kCaught);
}

TEST(PlantedFault, NoneIsSeenWhereNoneIsPlanted) {
  for (const std::string& name : kRings) EXPECT_LT(errors_with(name, Fault::kNone, documents(4)).largest(), 1e-12) << name;
}

}  // namespace
}  // namespace cpfit::kernels
