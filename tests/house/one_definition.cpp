#include "one_definition.h"

#include <map>
#include <regex>
#include <set>
#include <sstream>

namespace cpfit::house {

std::vector<TypeDefinition> type_definitions(std::string_view path, std::string_view text) {
  static const std::regex kOpens(R"(^(inline )?namespace( ([\w:]+))? \{.*)");
  static const std::regex kCloses(R"(^\}  // namespace.*)");
  // A definition, not a declaration: no ';' on the line before its brace; attributes and alignas may stand between.
  static const std::regex kType(
      R"(^(struct|class|union|enum class|enum struct|enum)\s+(?:\[\[.*\]\]\s*|alignas\(.*\)\s*)*(\w+)\b(?!::)[^;(=]*\{.*)");
  std::vector<TypeDefinition> types;
  std::vector<std::string> scopes;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_match(line, match, kOpens)) {
      scopes.push_back(match[3].str());
    } else if (std::regex_match(line, kCloses)) {
      if (!scopes.empty()) scopes.pop_back();
    } else if (std::regex_match(line, match, kType)) {
      std::string name;
      bool is_private = false;
      for (const std::string& scope : scopes) {
        is_private = is_private || scope.empty();
        name += scope + "::";
      }
      if (!is_private) types.push_back({name + match[2].str(), std::string(path)});
    }
  }
  return types;
}

std::vector<std::string> namesakes(const std::vector<TypeDefinition>& types) {
  std::map<std::string, std::set<std::string>> files;
  for (const TypeDefinition& type : types) files[type.name].insert(type.path);
  std::vector<std::string> sentences;
  for (const auto& [name, paths] : files) {
    if (paths.size() < 2) continue;
    std::string sentence = name + " is defined in";
    for (const std::string& path : paths) sentence += " " + path;
    sentences.push_back(sentence);
  }
  return sentences;
}

}  // namespace cpfit::house
