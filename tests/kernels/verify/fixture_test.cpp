// The numbers of a case: the same everywhere, independent of where a token is stored, exact in the case's number type.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/reference/cpu_operators.h"
#include "kernels/verify/fixture.h"
#include "kernels/verify/suite.h"

namespace cpfit::kernels {
namespace {

Case packed(std::vector<DocumentLength> documents, Number number) {
  Case made;
  made.method = "te_p2p";
  made.mask = attention::MaskShape::kDocuments;
  made.documents = std::move(documents);
  for (const DocumentLength& length : made.documents) made.query_tokens += length.padded;
  made.key_tokens = made.query_tokens;
  made.number = number;
  made.heads = {2, 1, 4, 3, 0.5};
  return made;
}

TEST(VerifyFixture, ATokenKeepsItsNumbersHoweverItIsPadded) {
  const Fixture tight = fixture_of(packed({{3, 3}, {5, 5}}, Number::kFp64));
  const Fixture loose = fixture_of(packed({{3, 4}, {5, 12}}, Number::kFp64));
  // Rows of k: 1 head of 4. Document 1 begins at row 3 of the tight one and at row 4 of the loose one.
  EXPECT_TRUE(std::equal(tight.k.begin(), tight.k.begin() + 3 * 4, loose.k.begin()));
  EXPECT_TRUE(std::equal(tight.k.begin() + 3 * 4, tight.k.end(), loose.k.begin() + 4 * 4));
  // Padding is there and large: 7 rows more in the second document.
  const auto largest = [](auto begin, auto end) {
    double most = 0;
    for (auto i = begin; i != end; ++i) most = std::max(most, std::abs(*i));
    return most;
  };
  EXPECT_LE(largest(tight.k.begin(), tight.k.end()), 2.0);
  EXPECT_GT(largest(loose.k.begin() + 9 * 4, loose.k.end()), 4.0);
}

TEST(VerifyFixture, TensorsTokensAndSeedsDiffer) {
  Case made = packed({{6, 6}}, Number::kFp64);
  const Fixture one = fixture_of(made);
  EXPECT_NE(std::vector<double>(one.q.begin(), one.q.begin() + 4), std::vector<double>(one.k.begin(), one.k.begin() + 4));
  EXPECT_NE(std::vector<double>(one.k.begin(), one.k.begin() + 4), std::vector<double>(one.k.begin() + 4, one.k.begin() + 8));
  EXPECT_NE(std::vector<double>(one.dout.begin(), one.dout.begin() + 6), std::vector<double>(6, one.dout[0]))
      << "dO is not uniform";
  made.seed = 2;
  EXPECT_NE(fixture_of(made).q, one.q);
}

TEST(VerifyFixture, NumbersAreExactInTheirType) {
  for (const Number number : {Number::kFp64, Number::kFp32, Number::kBf16, Number::kFp16}) {
    const Fixture fixture = fixture_of(packed({{40, 48}}, number));
    const auto operators = make_cpu_operators(Number::kFp64);
    const Array stored = operators->upload(number, 48, 8, fixture.q);
    EXPECT_EQ(operators->download(stored), fixture.q) << name_of(number);
  }
}

TEST(VerifyFixture, TheHashNamesTheNumbersAndIsTheSameEverywhere) {
  const Case made = packed({{3, 4}, {5, 12}}, Number::kBf16);
  EXPECT_EQ(fixture_hash(made), fixture_hash(made));
  Case other = made;
  other.seed = 7;
  EXPECT_NE(fixture_hash(other), fixture_hash(made));
  // Integers alone make these numbers, so the hash is one constant on every machine.
  EXPECT_EQ(fixture_hash(made), "f956ff3493306707d3dab9874fd3241ad4c5b4f1f4bf51df3470e5b6bd26636a");
  // A suite's hash does not depend on what the same sequence is run with.
  other = made;
  other.method = "fp32_ring";
  EXPECT_EQ(hash_of_fixtures({made, other}), hash_of_fixtures({made}));
}

}  // namespace
}  // namespace cpfit::kernels
