// The part of YAML that topology files use: block mappings and sequences by indentation, plain and quoted scalars, comments. Flow
// collections ({...}, [...]) stay text. Private to the importers.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/quantity/problem.h"

namespace cpfit {

struct YamlPair;

struct YamlNode {
  std::size_t line = 0;
  std::string text;             // a scalar
  std::vector<YamlNode> items;  // a sequence
  std::vector<YamlPair> pairs;  // a mapping, in order
  [[nodiscard]] const YamlNode* find(std::string_view key) const;
};

struct YamlPair {
  std::string first;
  YamlNode second;
};

/// Problems: tabs as indentation, lines that fit no structure, nesting above 32, more than 500,000 lines.
[[nodiscard]] Outcome<YamlNode> parse_yaml(std::string_view text, const std::string& where);

}  // namespace cpfit
