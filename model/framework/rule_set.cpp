#include "model/framework/rule_set.h"

#include <cstdio>
#include <cstdlib>

#include "model/presets/embedded.h"

namespace cpfit {

std::vector<RuleSet> framework_presets() {
  Outcome<std::vector<RuleSet>> sets = read_frameworks(embedded_file("presets/frameworks.toml"));
  if (sets) return std::move(sets).value();
  // The file is compiled in: a mistake in it is ours, not the user's.
  for (const Problem& problem : sets.problems()) {
    std::fprintf(stderr, "cpfit: internal error: frameworks.toml: %s\n", to_text(problem).c_str());
  }
  std::abort();
}

Outcome<RuleSet> find_framework(const std::string& name) {
  std::vector<std::string> names;
  for (RuleSet& rules : framework_presets()) {
    if (rules.name == name) return std::move(rules);
    names.push_back(rules.name);
  }
  const std::string near = nearest_name(name, names);
  std::string repair = near.empty() ? "use one of:" : "did you mean \"" + near + "\"?";
  if (near.empty()) {
    for (const std::string& candidate : names) repair += " " + candidate;
  }
  return Problem{"framework.unknown", "framework", "there is no framework rule set \"" + name + "\"", repair};
}

}  // namespace cpfit
