// Verifications in a store: every field comes back, and what they prove is what the youngest of them says.
#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "db/store/verification_store.h"
#include "sample_records.h"

namespace cpfit {
namespace {

VerifiedCase sample_case(std::int32_t cp, bool passed) {
  VerifiedCase one;
  one.method = "te_p2p";
  one.mask = "documents";
  one.shape = "698 real of 704";
  one.layout = "zigzag per document";
  one.dtype = "bf16";
  one.cp = cp;
  one.inner = 2;
  one.length = 704;
  one.passed = passed;
  for (int i = 0; i < kVerifiedTensors; ++i) {
    const double unit = 1e-3 * (i + 1) + cp;
    one.errors[static_cast<std::size_t>(i)] = {unit, 2 * unit, 3 * unit, 4 * unit, 5 * unit, 6 * unit, i != 1};
  }
  one.pad_checked = true;
  one.pad_invariant = passed;
  one.covered = false;
  one.occupancy = 0.25;
  one.trouble = passed ? "" : "dk of stored token 5 is not 0";
  return one;
}

Verification sample_verification() {
  Verification verification;
  verification.suite = "quick";
  verification.backend = "reference";
  verification.implementation = "cpfit";
  verification.implementation_version = "0.1.0";
  verification.tool_version = "0.1.0";
  verification.fixture_hash = "abc";
  verification.seconds = 12.5;
  verification.cases = {sample_case(2, true), sample_case(4, true)};
  verification.blocks = {{"te_p2p", "two layers", 4, true, 4.5, 4.25, "layer1.key", 1e-15, 1e-11, "slow"}};
  VerifiedControl control;
  control.name = "kv_of_step_zero";
  control.meaning = "in words";
  control.planted_in = "a case";
  control.caught = true;
  control.tensor = "dk";
  control.error = 0.5;
  control.limit = 1e-12;
  control.loss_truth = 4.5;
  control.loss_faulty = 4.75;
  control.gradient = "head";
  control.gradient_error = 0.75;
  control.loss_looks_alike = true;
  control.trouble = "too";
  verification.controls = {control};
  verification.left_out = {{"heads do not divide", 7}};
  return verification;
}

TEST(StoredVerification, ComesBackWhole) {
  const sample::TemporaryFolder folder;
  const std::string path = folder.file("v.cpfit");
  VerificationId id{};
  {
    Store store = open_store(path);
    (void)save_verification(store, Verification{});
    id = save_verification(store, sample_verification());
  }
  const Store store = open_store(path, {.access = StoreAccess::kRead});
  const Outcome<Verification> loaded = load_verification(store, id);
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(*loaded, sample_verification());
  const std::vector<VerificationListing> listings = list_verifications(store);
  ASSERT_EQ(listings.size(), 2u);
  EXPECT_EQ(listings[0].id, id);
  EXPECT_EQ(listings[0].cases, 2);
  EXPECT_EQ(listings[0].failed, 0);
  EXPECT_EQ(listings[0].caught, 1);
  EXPECT_EQ(listings[1].cases, 0);
  EXPECT_EQ(load_verification(store, VerificationId{99}).problems()[0].code, "verification.unknown");
}

TEST(StoredVerification, WhatIsNoNumberIsStoredAsInfiniteOrAbsent) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const sample::TemporaryFolder folder;
  Store store = open_store(folder.file("v.cpfit"));
  Verification verification = sample_verification();
  verification.cases[0].errors[2].normwise = kNan;
  verification.controls[0].loss_faulty = kNan;
  const Outcome<Verification> loaded = load_verification(store, save_verification(store, verification));
  EXPECT_EQ(loaded->cases[0].errors[2].normwise, std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(loaded->controls[0].loss_faulty));
}

TEST(Proofs, AreTheDegreesAtWhichAllPassedLast) {
  const sample::TemporaryFolder folder;
  Store store = open_store(folder.file("v.cpfit"));
  EXPECT_TRUE(proofs_of(store).empty());
  (void)save_verification(store, sample_verification());
  std::vector<AttentionProof> proofs = proofs_of(store);
  ASSERT_EQ(proofs.size(), 1u);
  EXPECT_EQ(proofs[0].method, "te_p2p");
  EXPECT_EQ(proofs[0].mask, "documents");
  EXPECT_EQ(proofs[0].layout, "zigzag per document");
  EXPECT_EQ(proofs[0].dtype, "bf16");
  EXPECT_EQ(proofs[0].cp, (std::vector<std::int32_t>{2, 4}));
  EXPECT_EQ(proofs[0].fixture_hash, "abc");

  // Another case of cp 4 fails later: its proof is taken back, that of cp 2 stays.
  Verification later = sample_verification();
  later.cases = {sample_case(4, true), sample_case(4, false)};
  (void)save_verification(store, later);
  EXPECT_EQ(proofs_of(store).at(0).cp, (std::vector<std::int32_t>{2}));
  // And comes back when it passes again, together with what another framework proved.
  (void)save_verification(store, sample_verification());
  Verification foreign = sample_verification();
  foreign.implementation = "TransformerEngine";
  foreign.implementation_version = "2.8";
  foreign.controls.clear();
  (void)save_verification(store, foreign);
  proofs = proofs_of(store);
  ASSERT_EQ(proofs.size(), 2u);
  EXPECT_EQ(proofs[0].implementation, "TransformerEngine");
  EXPECT_EQ(proofs[1].cp, (std::vector<std::int32_t>{2, 4}));
}

TEST(Proofs, ASuiteThatMissesAFaultProvesNothing) {
  const sample::TemporaryFolder folder;
  Store store = open_store(folder.file("v.cpfit"));
  (void)save_verification(store, sample_verification());
  Verification blind = sample_verification();
  blind.controls[0].caught = false;
  (void)save_verification(store, blind);
  EXPECT_TRUE(proofs_of(store).empty());
}

}  // namespace
}  // namespace cpfit
