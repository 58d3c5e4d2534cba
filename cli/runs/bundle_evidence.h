// Whether the attention of a recipe is right, as far as a database tells: the proofs, their cases with seeds and fixture hashes;
// and whether what another machine wrote of it means something here.
#pragma once

#include <string>
#include <vector>

#include "db/store/store.h"
#include "model/recipe/scenario.h"
#include "model/record/bundle.h"

namespace cpfit::cli {

/// Proofs and cases of `recipe` in `store`; of an unproven one the cases that `cpfit verify` would run.
[[nodiscard]] BundledEquivalence equivalence_of(const Scenario& scenario, const Recipe& recipe, const Store& store);

struct EquivalenceReview {
  Problems refused;                // a fixture that does not hash to what is claimed, a proof of something else
  std::vector<std::string> notes;  // sentences: cases that this cpfit does not know
  std::int64_t known = 0, cases = 0;
};
/// Cases are looked up in this cpfit's suites and their fixtures made again.
[[nodiscard]] EquivalenceReview review_equivalence(const BundledEquivalence& equivalence, std::int32_t cp,
                                                   const std::string& where);

}  // namespace cpfit::cli
