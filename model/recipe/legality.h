// Every rule that makes a recipe illegal, as data: id, what it checks, why, how to repair. cp_model.md A.7 and the rules of
// the frameworks. Two faces of one table: first_violation() is what the search calls (no allocation), explain() is for people.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "model/cluster/gpu.h"
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
  std::int32_t gpus_per_node;  // the larger of a scale-up domain and a host: tensor parallelism stays inside it
  const Gpu* gpu = nullptr;    // what the devices can compute in; null: not judged
  bool search_limits = true;   // also the limits a search sets for speed; false: only what the framework forbids, so that
                               // anybody's published run can be replayed
};

struct LegalityRule {
  std::string_view id;    // "world_size", "zigzag_chunks", ...
  std::string_view what;  // the condition in symbols
  std::string_view why;   // reason, with source
  std::string_view repair;
  bool (*holds)(const LegalityCase&);           // true as well where another rule already says what is wrong
  std::string (*values)(const LegalityCase&);   // the condition with its numbers: "131072 % (2 * 3) = 2"
  std::string (*nearest)(const LegalityCase&);  // legal values nearby: "tp may be 4 or 8"; may be empty
};

/// In the order in which they are tried: those that reject most recipes for least work come first.
[[nodiscard]] std::span<const LegalityRule> legality_rules();

/// Index of the first rule that fails, or -1 when the recipe is legal. Does not allocate.
[[nodiscard]] int first_violation(const LegalityCase& at);

/// Every violated rule as a problem "recipe.<id>" with values and the nearest legal values.
[[nodiscard]] Problems explain_violations(const LegalityCase& at);

}  // namespace cpfit
