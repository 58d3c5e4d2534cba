// ask hazards: combinations that are known, from public issue threads, to give wrong gradients, lost tokens, NaN or options
// without effect, as a table. A row applies by what the recipe, the mask and the rule set say; which version a cluster runs is
// not known here, so each row says where it is mended, if it is, and how to check.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/framework/rule_set.h"
#include "model/recipe/scenario.h"

namespace cpfit::ask {

enum class HazardKind : std::uint8_t { kWrongGradients, kLostTokens, kNan, kIgnored, kPrecision };
[[nodiscard]] std::string_view name_of(HazardKind kind);

struct HazardCase {
  const Scenario& scenario;
  const RuleSet& rules;
  const Recipe& recipe;
};

struct Hazard {
  std::string_view id;
  HazardKind kind;
  std::string_view what;    // the symptom
  std::string_view when;    // versions, where they are known
  std::string_view check;   // how to avoid or to see it
  std::string_view source;  // the thread
  bool (*applies)(const HazardCase&);
};

[[nodiscard]] std::span<const Hazard> all_hazards();
[[nodiscard]] std::vector<Hazard> hazards_of(const HazardCase& at);

}  // namespace cpfit::ask
