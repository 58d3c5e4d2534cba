// Every rule that makes a recipe illegal, as data: id, what it checks, why, how to repair. cp_model.md A.7 and the rules of
// the frameworks. Two faces of one table: first_violation() is what the search calls (no allocation), explain() is for people.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "model/framework/rule_set.h"
#include "model/quantity/problem.h"
#include "model/recipe/recipe.h"
#include "model/recipe/training.h"
#include "model/transformer/architecture.h"

namespace cpfit {

struct LegalityCase {
  const Architecture& model;
  const Training& training;
  const Recipe& recipe;
  const RuleSet& rules;
  std::int64_t gpus;           // GPUs of the cluster
  std::int32_t gpus_per_node;  // of one scale-up domain
};

struct LegalityRule {
  std::string_view id;    // "world_size", "zigzag_chunks", ...
  std::string_view what;  // the condition in symbols
  std::string_view why;   // reason, with source
  std::string_view repair;
  bool (*holds)(const LegalityCase&);
};

[[nodiscard]] std::span<const LegalityRule> legality_rules();

/// Index of the first rule that fails, or -1 when the recipe is legal. Does not allocate.
[[nodiscard]] int first_violation(const LegalityCase& at);

/// Every violated rule as a problem with values and the nearest legal values.
[[nodiscard]] Problems explain_violations(const LegalityCase& at);

}  // namespace cpfit
