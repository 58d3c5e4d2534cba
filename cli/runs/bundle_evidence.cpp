#include "cli/runs/bundle_evidence.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/runs/suite_match.h"
#include "cli/verify/names.h"
#include "cli/verify/proof.h"
#include "db/store/verification_store.h"
#include "kernels/verify/fixture.h"

namespace cpfit::cli {

namespace {

constexpr std::int32_t kLargestDegree = 64;  // of a suite

std::string layout_for(const std::string& mask, const ProofNeed& need) {
  // As find_proof: a window inside documents is proved by windows over the whole sequence.
  return mask == "window" && need.layout == "zigzag per document" ? "zigzag" : need.layout;
}

bool wanted(const VerifiedCase& one, const ProofNeed& need, std::int32_t cp) {
  return one.method == need.method && one.dtype == need.dtype && one.cp == cp &&
         std::ranges::find(need.masks, one.mask) != need.masks.end() && one.layout == layout_for(one.mask, need);
}

kernels::SuiteFilter filter_for(const std::string& method, const std::vector<std::string>& masks, const std::string& dtype,
                                std::int32_t cp) {
  VerifiedCase one;
  one.method = method;
  one.dtype = dtype;
  one.cp = cp;
  std::vector<VerifiedCase> cases;
  for (const std::string& mask : masks) {
    one.mask = mask;
    cases.push_back(one);
  }
  return filter_of(cases);
}

/// Of the degrees that were proved the recipe's, else the largest.
std::int32_t shown_degree(const std::vector<AttentionProof>& proofs, std::int32_t cp) {
  if (proofs.empty()) return std::clamp(cp, 2, kLargestDegree);
  const std::vector<std::int32_t>& proved = proofs.front().cp;
  return proved.empty() || std::ranges::find(proved, cp) != proved.end() ? cp : proved.back();
}

std::vector<BundledCase> stored_cases(const Store& store, const AttentionProof& proof, const ProofNeed& need, std::int32_t cp) {
  std::vector<BundledCase> cases;
  for (const VerificationListing& listing : list_verifications(store)) {
    if (listing.implementation != proof.implementation || listing.implementation_version != proof.implementation_version ||
        listing.backend != proof.backend || listing.fixture_hash != proof.fixture_hash) {
      continue;
    }
    const Outcome<Verification> verification = load_verification(store, listing.id);
    if (!verification.ok()) continue;
    const std::map<std::string, kernels::Case> known =
        suite_by_key(listing.suite, filter_for(need.method, need.masks, need.dtype, cp));
    for (const VerifiedCase& one : verification->cases) {
      if (!wanted(one, need, cp)) continue;
      BundledCase made;
      made.name = case_key(one);
      if (const auto found = known.find(made.name); found != known.end()) {
        made.seed = found->second.seed;
        made.fixture = kernels::fixture_hash(found->second);
      }
      made.run = true;
      made.passed = one.passed;
      for (int i = 0; i < kVerifiedTensors; ++i) {
        const TensorError& error = one.errors[static_cast<std::size_t>(i)];
        if (error.judged) made.errors.push_back({std::string(name_of(static_cast<VerifiedTensor>(i))), error.normwise});
      }
      cases.push_back(std::move(made));
    }
    break;  // the youngest decides
  }
  return cases;
}

std::vector<BundledCase> cases_to_run(const ProofNeed& need, std::int32_t cp) {
  std::vector<BundledCase> cases;
  const kernels::SuiteFilter filter = filter_for(need.method, need.masks, need.dtype, cp);
  if (filter.methods.empty() || filter.numbers.empty()) return cases;  // empty would mean all
  for (const kernels::Case& one : kernels::suite_cases(kernels::SuiteSize::kQuick, filter).cases) {
    if (layout_text(one) != layout_for(std::string(kernels::name_of(one.mask)), need)) continue;
    cases.push_back({case_key(one), one.seed, kernels::fixture_hash(one), false, false, {}});
  }
  return cases;
}

}  // namespace

BundledEquivalence equivalence_of(const Scenario& scenario, const Recipe& recipe, const Store& store) {
  BundledEquivalence equivalence;
  const RecipeProof proof = ProofBook(scenario, proofs_of(store)).of(recipe);
  equivalence.sentence = proof_text(proof, "FILE");
  if (!proof.needed()) return equivalence;
  equivalence.proofs = proof.by;
  const std::int32_t cp = shown_degree(proof.by, recipe.cp);
  equivalence.cases = proof.proved() ? stored_cases(store, proof.by.front(), proof.need, cp) : cases_to_run(proof.need, cp);
  return equivalence;
}

EquivalenceReview review_equivalence(const BundledEquivalence& equivalence, std::int32_t cp, const std::string& where) {
  EquivalenceReview review;
  if (equivalence.method.empty()) return review;
  if (!methods_named({equivalence.method}).ok()) {
    review.notes.push_back(
        fmt::format("this cpfit knows no order of sums '{}': what was proved of it means nothing here", equivalence.method));
    return review;
  }
  for (const AttentionProof& proof : equivalence.proofs) {
    const bool fits = proof.method == equivalence.method && proof.dtype == equivalence.dtype &&
                      std::ranges::find(equivalence.masks, proof.mask) != equivalence.masks.end();
    if (!fits) {
      review.refused.push_back({"bundle.proof", where,
                                fmt::format("its proof is of {} under {} in {}, the recipe runs {} in {}", proof.method,
                                            proof.mask, proof.dtype, equivalence.method, equivalence.dtype),
                                "export it again from the database that holds the verification"});
    }
  }
  const std::int32_t degree = shown_degree(equivalence.proofs, cp);
  const kernels::SuiteFilter filter = filter_for(equivalence.method, equivalence.masks, equivalence.dtype, degree);
  std::map<std::string, kernels::Case> known = suite_by_key("quick", filter);
  known.merge(suite_by_key("full", filter));
  for (const BundledCase& one : equivalence.cases) {
    ++review.cases;
    const auto found = known.find(one.name);
    if (found == known.end() || one.fixture.empty()) continue;
    ++review.known;
    if (found->second.seed == one.seed && kernels::fixture_hash(found->second) == one.fixture) continue;
    review.refused.push_back({"bundle.fixture", where,
                              fmt::format("the fixture of case '{}' with seed {} is not the one it names", one.name, one.seed),
                              "verify again (cpfit verify --db FILE) and export the run again"});
    break;  // the others differ for the same reason
  }
  if (review.known < review.cases)
    review.notes.push_back(fmt::format("{} of {} cases are not in this cpfit's suites: their fixtures could not be made again",
                                       review.cases - review.known, review.cases));
  return review;
}

}  // namespace cpfit::cli
