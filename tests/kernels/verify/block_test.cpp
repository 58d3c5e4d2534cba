// The two-layer block: its backward against finite differences, its ranks against the whole, and its own faults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/verify/block_run.h"

namespace cpfit::kernels {
namespace {

TEST(VerifyBlock, GradientsAreFiniteDifferences) {
  const Case verified = block_case("te_p2p", 2, Fault::kNone);
  const BlockSize size;
  Parameters parameters = suite_parameters(size);
  const BlockResult result = unsharded_block(verified, size, parameters);
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    // Three numbers of every parameter; central differences err by step^2 times the third derivative.
    const std::size_t count = parameters[p].matrix.values.size();
    for (const std::size_t i : {std::size_t{0}, count / 2, count - 1}) {
      constexpr double kStep = 1e-5;
      double& value = parameters[p].matrix.values[i];
      const double kept = value;
      value = kept + kStep;
      const double above = unsharded_block(verified, size, parameters).loss;
      value = kept - kStep;
      const double below = unsharded_block(verified, size, parameters).loss;
      value = kept;
      const double expected = (above - below) / (2 * kStep);
      EXPECT_NEAR(result.gradients[p].matrix.values[i], expected, 1e-7 * std::max(1.0, std::abs(expected)))
          << parameters[p].name << "[" << i << "]";
    }
  }
}

TEST(VerifyBlock, AgreesWithAnIndependentFramework) {
  // The block of `cpfit verify emit` (cp 4), written in JAX 0.10.2 from the folder's README.txt alone, differentiated by jax.grad
  // in fp64: its loss, and the Euclidean norm of each gradient.
  const std::vector<std::pair<std::string, double>> norms = {{"embedding", 0.26345394786836585},
                                                             {"layer0.norm_attention", 0.159666045652068},
                                                             {"layer0.query", 0.47659261006505405},
                                                             {"layer0.key", 0.4354704422698057},
                                                             {"layer0.value", 0.6609896777539689},
                                                             {"layer0.output", 0.8072847075540527},
                                                             {"layer0.norm_mlp", 0.18872288693277883},
                                                             {"layer0.gate", 0.5713625183617649},
                                                             {"layer0.up", 0.5094581805440414},
                                                             {"layer0.down", 0.6261893859909443},
                                                             {"layer1.norm_attention", 0.12632669706256155},
                                                             {"layer1.query", 0.24607194549046302},
                                                             {"layer1.key", 0.2728528761418334},
                                                             {"layer1.value", 0.4124431551530422},
                                                             {"layer1.output", 0.46099327963371695},
                                                             {"layer1.norm_mlp", 0.08706489271327617},
                                                             {"layer1.gate", 0.3138157671899808},
                                                             {"layer1.up", 0.2843718434930955},
                                                             {"layer1.down", 0.3545197886521351},
                                                             {"norm_final", 0.302832123217018},
                                                             {"head", 0.8349010634075983}};
  const BlockSize size;
  const BlockResult result = unsharded_block(block_case("te_p2p", 4, Fault::kNone), size, suite_parameters(size));
  EXPECT_NEAR(result.loss, 4.12973972154017, 1e-12);
  ASSERT_EQ(result.gradients.size(), norms.size());
  for (std::size_t i = 0; i < norms.size(); ++i) {
    EXPECT_EQ(result.gradients[i].name, norms[i].first);
    double squares = 0;
    for (const double value : result.gradients[i].matrix.values) squares += value * value;
    EXPECT_NEAR(std::sqrt(squares), norms[i].second, 1e-13) << norms[i].first;
  }
}

TEST(VerifyBlock, EveryMethodAgreesWithTheWholeModelByParameter) {
  const std::vector<Case> cases = block_cases();
  EXPECT_GE(cases.size(), 20u) << "12 methods at cp 2 and 4, less what heads forbid";
  for (const Case& verified : cases) {
    const BlockReport report = run_block(verified);
    EXPECT_TRUE(report.passed()) << verified.name << " " << report.trouble << " " << report.worst().name << " "
                                 << report.worst().error.normwise;
    EXPECT_EQ(report.errors.size(), 21u) << "embedding, 2 x 9, final norm, head";
  }
}

TEST(VerifyBlock, LabelsAreShiftedInsideDocumentsAndOneRankHasNone) {
  const Case verified = block_case("te_p2p", 4, Fault::kNone);
  const BlockTokens tokens = block_tokens(verified, BlockSize{});
  const Layer layer = layer_of(verified);
  for (const std::int32_t row : storage_rows(layer.queries, layer.mask, 3))
    EXPECT_EQ(tokens.labels[static_cast<std::size_t>(row)], -1);
  // Documents of 1, 25, 7, 32 and 13 tokens stored in 8, 32, 8, 32 and 16. The first token of the second, on rank 0:
  EXPECT_EQ(tokens.labels[8], tokens.ids[9]);
  EXPECT_EQ(tokens.positions[8], 0);
  EXPECT_EQ(tokens.labels[0], -1) << "a document of one token has nothing to predict";
  EXPECT_EQ(tokens.labels[8 + 24], -1) << "nor has the last token of any";
}

TEST(VerifyBlock, ItsOwnFaultsAreWhatTheySay) {
  const auto report = [](Fault fault) { return run_block(block_case("te_p2p", 4, fault)); };
  const BlockReport divided = report(Fault::kGradientDividedByCp);
  EXPECT_NEAR(divided.loss, divided.loss_truth, 1e-12);
  for (const ParameterError& parameter : divided.errors) EXPECT_NEAR(parameter.error.normwise, 0.75, 1e-9) << "g/4 - g";
  const BlockReport means = report(Fault::kLossMeanOfMeans);
  EXPECT_GT(std::abs(means.loss - means.loss_truth), 0.1) << "one of four ranks has no label, so a quarter of the mean is lost";
  const BlockReport labels = report(Fault::kLabelsShiftedAfterShard);
  EXPECT_GT(labels.worst().error.normwise, 0.1);
  EXPECT_FALSE(divided.passed() || means.passed() || labels.passed());
}

TEST(VerifyBlock, ALossThatLooksAlikeHidesAWrongGradient) {
  const BlockReport report = run_block(block_case("te_p2p", 4, Fault::kKvOfStepZero));
  EXPECT_NEAR(report.loss, report.loss_truth, 1e-12) << "the forward pass is right";
  EXPECT_GT(report.worst().error.normwise, 0.5);
  EXPECT_FALSE(report.passed());
}

}  // namespace
}  // namespace cpfit::kernels
