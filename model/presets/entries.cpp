#include "model/presets/entries.h"

#include <toml++/toml.h>

#include <algorithm>
#include <map>
#include <sstream>

namespace cpfit {

namespace {

/// What tells the tables of a preset's list apart, in the order in which a name is put together.
constexpr const char* kNamingKeys[] = {"name",    "gpu",  "library", "math",       "pass",
                                       "kernels", "link", "kind",    "generation", "ranks"};

std::string text_of(const toml::node& node) {
  std::ostringstream text;
  node.visit([&](const auto& value) { text << value; });
  return text.str();
}

/// A text without its quotes: what a person calls it.
std::string word_of(const toml::node& node) {
  const auto* text = node.as_string();
  return text != nullptr ? text->get() : text_of(node);
}

std::string name_of(const toml::table& row) {
  std::string name;
  for (const char* key : kNamingKeys) {
    const toml::node* node = row.get(key);
    if (node == nullptr || node->is_table() || node->is_array()) continue;
    name += (name.empty() ? "" : " ") + word_of(*node);
    if (std::string_view(key) == "name") break;
  }
  return name;
}

void add_table(const toml::table& table, const std::string& prefix, std::vector<TextEntry>& entries);

void add_list(const toml::array& list, const std::string& path, std::vector<TextEntry>& entries) {
  std::map<std::string, int> seen;
  for (const toml::node& node : list) {
    const toml::table& row = *node.as_table();
    std::string name = name_of(row);
    if (const int before = seen[name]++; before > 0 || name.empty()) name += "#" + std::to_string(before + 1);
    add_table(row, path + "[" + name + "].", entries);
  }
}

void add_table(const toml::table& table, const std::string& prefix, std::vector<TextEntry>& entries) {
  // toml++ sorts keys; the text's order is that of their places.
  std::vector<std::pair<std::string, const toml::node*>> rows;
  for (const auto& [key, node] : table) rows.emplace_back(std::string(key.str()), &node);
  std::ranges::stable_sort(rows, [](const auto& a, const auto& b) {
    const toml::source_position left = a.second->source().begin, right = b.second->source().begin;
    return std::pair(left.line, left.column) < std::pair(right.line, right.column);
  });
  for (const auto& [key, node] : rows) {
    const std::string path = prefix + key;
    if (const toml::table* inner = node->as_table()) {
      add_table(*inner, path + ".", entries);
    } else if (const toml::array* list = node->as_array(); list != nullptr && list->is_array_of_tables()) {
      add_list(*list, path, entries);
    } else {
      entries.push_back({path, text_of(*node)});
    }
  }
}

/// "gpu[H100]" of "gpu[H100].memory"; empty where no table of a list is named.
std::string row_of(const std::string& path) {
  const std::size_t end = path.find("].");
  return end == std::string::npos ? std::string() : path.substr(0, end + 1);
}

}  // namespace

Outcome<std::vector<TextEntry>> toml_entries(std::string_view text) {
  try {
    const toml::table root = toml::parse(text);
    std::vector<TextEntry> entries;
    add_table(root, "", entries);
    return entries;
  } catch (const toml::parse_error& error) {
    return Problem{"entries.syntax", "line " + std::to_string(error.source().begin.line), std::string(error.description()), ""};
  }
}

std::vector<EntryChange> changed_entries(const std::vector<TextEntry>& before, const std::vector<TextEntry>& after) {
  std::map<std::string, const std::string*> then, now;
  std::set<std::string> rows_then, rows_now, told;
  for (const TextEntry& entry : before) {
    then[entry.path] = &entry.value;
    rows_then.insert(row_of(entry.path));
  }
  for (const TextEntry& entry : after) {
    now[entry.path] = &entry.value;
    rows_now.insert(row_of(entry.path));
  }
  std::vector<EntryChange> changes;
  for (const TextEntry& entry : after) {
    const std::string row = row_of(entry.path);
    if (!row.empty() && !rows_then.contains(row)) {
      if (told.insert(row).second) changes.push_back({row, "", "added"});
      continue;
    }
    const auto found = then.find(entry.path);
    if (found == then.end())
      changes.push_back({entry.path, "", entry.value});
    else if (*found->second != entry.value)
      changes.push_back({entry.path, *found->second, entry.value});
  }
  for (const TextEntry& entry : before) {
    const std::string row = row_of(entry.path);
    if (!row.empty() && !rows_now.contains(row)) {
      if (told.insert(row).second) changes.push_back({row, "there", ""});
    } else if (!now.contains(entry.path)) {
      changes.push_back({entry.path, entry.value, ""});
    }
  }
  return changes;
}

bool speaks_of(const std::string& path, const std::set<std::string>& names) {
  const std::size_t open = path.find('[');
  const std::size_t close = path.find(']', open == std::string::npos ? 0 : open);
  if (open == std::string::npos || close == std::string::npos) return true;
  const std::string name = path.substr(open + 1, close - open - 1);
  if (name.starts_with('#') || names.contains(name)) return true;  // without a name it speaks of everything
  std::istringstream words(name);
  for (std::string word; words >> word;) {
    if (names.contains(word)) return true;
  }
  return false;
}

}  // namespace cpfit
