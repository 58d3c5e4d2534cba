#include "model/recipe/legality.h"

#include <array>

#include "model/recipe/legality_grid.h"
#include "model/recipe/legality_sequence.h"
#include "model/recipe/legality_state.h"

namespace cpfit {

namespace {

template <std::size_t... sizes>
constexpr auto joined(const LegalityRule& first, const LegalityRule (&... groups)[sizes]) {
  std::array<LegalityRule, 1 + (sizes + ...)> all{};
  std::size_t at = 0;
  all[at++] = first;
  const auto append = [&](const auto& group) {
    for (const LegalityRule& rule : group) all[at++] = rule;
  };
  (append(groups), ...);
  return all;
}

// Batch and world reject most of a raw grid for two divisions; the layout walks all chunks and comes after them.
constexpr auto kRules = joined(legality::kPositive, legality::kGridRules, legality::kSequenceRules, legality::kStateRules);

}  // namespace

std::span<const LegalityRule> legality_rules() { return kRules; }

int first_violation(const LegalityCase& at) {
  for (std::size_t i = 0; i < kRules.size(); ++i) {
    if (!kRules[i].holds(at)) return static_cast<int>(i);
  }
  return -1;
}

Problems explain_violations(const LegalityCase& at) {
  Problems problems;
  for (const LegalityRule& rule : kRules) {
    if (rule.holds(at)) continue;
    const std::string nearest = rule.nearest(at);
    problems.push_back({fmt::format("recipe.{}", rule.id), "", fmt::format("{}: {}", rule.what, rule.values(at)),
                        nearest.empty() ? std::string(rule.repair) : fmt::format("{}; {}", rule.repair, nearest)});
    if (rule.id == legality::kPositive.id) break;  // the other rules divide by these numbers
  }
  return problems;
}

}  // namespace cpfit
