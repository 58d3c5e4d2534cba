// Which implementation of a recipe's attention was proved: what the recipe runs (method, masks, cut, number type), looked up
// among the proofs of a database. A recipe whose strategy and masks have not all passed is unproven.
#pragma once

#include <string>
#include <vector>

#include "cli/json.h"
#include "model/framework/rule_set.h"
#include "model/recipe/scenario.h"
#include "model/record/verification.h"

namespace cpfit::cli {

/// What must have passed before a recipe's attention counts as proved. `method` is empty where cp = 1: nothing is cut.
struct ProofNeed {
  std::string method;              // a name of `cpfit verify`: the order and the sums of the recipe's framework
  std::vector<std::string> masks;  // of all its layers
  std::string layout;              // "zigzag", "zigzag per document", ...
  std::string dtype;               // of attention: FP8 recipes attend in bf16 here
};
[[nodiscard]] ProofNeed proof_need(const Recipe& recipe, const RuleSet& rules, const Architecture& model,
                                   const Training& training);

struct RecipeProof {
  ProofNeed need;
  std::vector<AttentionProof> by;  // one a mask, all of one implementation; empty: unproven
  [[nodiscard]] bool needed() const { return !need.method.empty(); }
  [[nodiscard]] bool proved() const { return !by.empty(); }
};
/// Another implementation where one was checked, else cpfit's own strategy; GPUs before processes before threads; the youngest.
[[nodiscard]] RecipeProof find_proof(ProofNeed need, const std::vector<AttentionProof>& proofs);

/// "none", "not_needed", "cpfit 0.1.0", "TransformerEngine 2.8".
[[nodiscard]] std::string proof_word(const RecipeProof& proof);
/// One line for the shipped recipe: whose attention was proved, or how to prove it.
[[nodiscard]] std::string proof_text(const RecipeProof& proof, const std::string& database);
/// method, masks, layout, dtype, and by whom, where and when it was proved.
[[nodiscard]] Json proof_json(const RecipeProof& proof);

/// Looks up every candidate of one scenario.
class ProofBook {
 public:
  ProofBook(const Scenario& scenario, std::vector<AttentionProof> proofs);
  [[nodiscard]] RecipeProof of(const Recipe& recipe) const;

 private:
  Architecture model_;
  Training training_;
  std::vector<RuleSet> rules_;
  std::vector<AttentionProof> proofs_;
};

/// proof_word and proof_json of `book`, which must outlive it.
[[nodiscard]] ProofSource proof_source(const ProofBook& book);

}  // namespace cpfit::cli
