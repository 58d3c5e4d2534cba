#include "model/launch/settings.h"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <charconv>
#include <nlohmann/json.hpp>
#include <sstream>

#include "model/quantity/text_file.h"
#include "model/recipe/recipe_names.h"

namespace cpfit::launch {

namespace {

struct Word {
  std::string text;
  int line = 1;
};

bool is_name(std::string_view text) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  for (const char c : text) {
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_')) return false;
  }
  return true;
}

std::vector<Word> words_of(std::string_view text) {
  std::vector<Word> words;
  std::string word;
  bool inside = false;
  char quote = 0;
  int line = 1, begun = 1;
  const auto end_word = [&] {
    if (inside) words.push_back({word, begun});
    word.clear();
    inside = false;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (!inside) begun = line;
    if (c == '\n') ++line;
    if (quote == 0 && c == '#' && !inside) {
      while (i + 1 < text.size() && text[i + 1] != '\n') ++i;
    } else if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      ++i;
      if (text[i] == '\n') {
        ++line;
        if (quote == 0) end_word();
      } else {
        inside = true;
        word += text[i];
      }
    } else if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else if (c == ' ' || c == '\n' || c == '\t') {  // a quoted list of arguments ("--a 1 --b 2"): cut like an unquoted one
        const std::size_t equals = word.find('=');
        if (word.starts_with("-") || word.empty()) {
          end_word();
        } else if (equals != std::string::npos && is_name(word.substr(0, equals))) {
          word = word.substr(equals + 1);
          inside = !word.empty();
          end_word();
        } else {
          end_word();
        }
        begun = line;
      } else {
        inside = true;
        word += c;
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
      inside = true;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ';' || c == '(' || c == ')') {
      if ((c == '(' || c == ')') && word.starts_with("E") && word.find('t') != std::string::npos) {
        word += c;  // a pipeline layout: "E|(t|)*3,L"
      } else {
        end_word();
        if (c == '\n' || c == ';') words.push_back({"\n", line});
      }
    } else {
      inside = true;
      word += c;
    }
  }
  end_word();
  return words;
}

/// Text that grows beyond this by its variables (A=$A$A, again and again) is left as it stands.
constexpr std::size_t kLongestWord = 64u << 10;

std::string replaced(const std::string& text, const std::map<std::string, std::string>& variables) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$') {
      out += text[i];
      continue;
    }
    std::size_t end = i + 1;
    std::string name, otherwise = text.substr(i);
    if (end < text.size() && text[end] == '{') {
      const std::size_t close = text.find('}', end);
      if (close == std::string::npos) return out + text.substr(i);
      const std::string inner = text.substr(end + 1, close - end - 1);
      const std::size_t colon = inner.find(":-");
      name = inner.substr(0, colon);
      otherwise = colon == std::string::npos ? text.substr(i, close + 1 - i) : inner.substr(colon + 2);
      end = close + 1;
    } else {
      while (end < text.size() && is_name("a" + text.substr(end, 1))) ++end;
      name = text.substr(i + 1, end - i - 1);
      otherwise = text.substr(i, end - i);
    }
    const auto found = variables.find(name);
    out += found == variables.end() ? otherwise : found->second;
    if (out.size() > kLongestWord && out.size() > text.size()) return text;
    i = end - 1;
  }
  return out;
}

std::string trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1));
}

std::string unquoted(std::string text) {
  if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front())
    return text.substr(1, text.size() - 2);
  return text;
}

/// "[2, 4]" -> 2, 4; anything else is one value.
std::vector<std::string> values_of(const std::string& text) {
  const std::string plain = trimmed(text);
  if (plain.size() < 2 || plain.front() != '[' || plain.back() != ']') return {unquoted(plain)};
  std::vector<std::string> values;
  std::istringstream stream(plain.substr(1, plain.size() - 2));
  for (std::string part; std::getline(stream, part, ',');) {
    if (const std::string value = unquoted(trimmed(part)); !value.empty()) values.push_back(value);
  }
  return values;
}

std::string text_of(const nlohmann::json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

constexpr int kDeepest = 64;

bool flatten(const nlohmann::json& value, const std::string& name, Settings& into, int depth) {
  if (depth > kDeepest) return false;
  if (value.is_object()) {
    for (const auto& [key, inner] : value.items()) {
      if (!flatten(inner, name.empty() ? key : name + "." + key, into, depth + 1)) return false;
    }
    return true;
  }
  Setting setting{name, {}, name};
  if (value.is_array()) {
    for (const auto& inner : value) setting.values.push_back(text_of(inner));
  } else if (!value.is_null()) {
    setting.values.push_back(text_of(value));
  }
  into.options.push_back(std::move(setting));
  return true;
}

void flatten(const toml::node& node, const std::string& name, Settings& into) {
  const auto text = [](const toml::node& leaf) {
    if (const auto value = leaf.value<std::string>(); value && leaf.is_string()) return *value;
    if (const auto value = leaf.value<bool>(); value && leaf.is_boolean()) return std::string(*value ? "true" : "false");
    if (const auto value = leaf.value<std::int64_t>(); value && leaf.is_integer()) return std::to_string(*value);
    if (const auto value = leaf.value<double>()) return fmt::format("{}", *value);
    return std::string("?");
  };
  if (const toml::table* table = node.as_table()) {
    for (const auto& [key, inner] : *table) {
      const std::string word(key.str());
      flatten(inner, name.empty() ? word : name + "." + word, into);
    }
    return;
  }
  Setting setting{name, {}, fmt::format("line {}", node.source().begin.line)};
  if (const toml::array* array = node.as_array()) {
    for (const toml::node& inner : *array) setting.values.push_back(text(inner));
  } else {
    setting.values.push_back(text(node));
  }
  into.options.push_back(std::move(setting));
}

/// torchrun's only option whose value looks like an assignment: "--rdzv-conf timeout=900,join_timeout=600".
bool takes_pairs(const std::string& option) { return option == "--rdzv-conf" || option == "--rdzv_conf"; }

}  // namespace

Settings read_words(std::string_view text) {
  Settings settings;
  Setting* open = nullptr;
  for (const Word& word : words_of(text)) {
    const std::string plain = replaced(word.text, settings.variables);
    const std::string where = fmt::format("line {}", word.line);
    const std::size_t equals = plain.find('=');
    if (plain == "\n") {
      open = nullptr;  // values stand on the line of their option, or after a continuation
    } else if (plain.size() > 2 && plain.starts_with("--")) {
      settings.options.push_back({plain.substr(0, equals), {}, where});
      if (equals != std::string::npos) settings.options.back().values = values_of(plain.substr(equals + 1));
      open = equals == std::string::npos ? &settings.options.back() : nullptr;
    } else if (open != nullptr && open->values.empty() && takes_pairs(open->name)) {
      open->values.push_back(plain);
    } else if (equals != std::string::npos && is_name(plain.substr(0, equals))) {
      settings.variables[plain.substr(0, equals)] = plain.substr(equals + 1);
      settings.options.push_back({plain.substr(0, equals), values_of(plain.substr(equals + 1)), where});
      open = nullptr;
    } else if (equals != std::string::npos && equals > 0 && plain.find('.') < equals) {  // Hydra: group.name=value
      const std::size_t begin = plain.find_first_not_of('+');
      settings.options.push_back({plain.substr(begin, equals - begin), values_of(plain.substr(equals + 1)), where});
      open = nullptr;
    } else if (plain == "export" || plain == "unset") {
      open = nullptr;
    } else if (open != nullptr) {
      open->values.push_back(plain);
    }
  }
  return settings;
}

Outcome<Settings> read_yaml(std::string_view text) {
  Settings settings;
  struct Level {
    std::size_t indent;
    std::string name;
  };
  std::vector<Level> levels;
  std::istringstream stream{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    if (const std::size_t comment = line.find(" #"); comment != std::string::npos) line.resize(comment);
    const std::string plain = trimmed(line);
    if (plain.empty() || plain[0] == '#' || plain == "---") continue;
    const std::size_t indent = line.find_first_not_of(' ');
    if (plain.starts_with("- ") && !settings.options.empty() && !levels.empty()) {
      settings.options.back().values.push_back(unquoted(trimmed(plain.substr(2))));
      continue;
    }
    const std::size_t colon = plain.find(':');
    if (colon == std::string::npos || line.find('\t') < indent) {
      return Problem{"launch.unreadable", fmt::format("line {}", number), fmt::format("'{}' is not 'key: value'", plain),
                     "paste the YAML configuration with blanks as indentation"};
    }
    while (!levels.empty() && levels.back().indent >= indent) levels.pop_back();
    const std::string key = unquoted(trimmed(plain.substr(0, colon)));
    const std::string name = levels.empty() ? key : levels.back().name + "." + key;
    levels.push_back({indent, name});
    const std::string value = trimmed(plain.substr(colon + 1));
    settings.options.push_back(
        {name, value.empty() ? std::vector<std::string>{} : values_of(value), fmt::format("line {}", number)});
  }
  return settings;
}

Outcome<Settings> read_toml(std::string_view text) {
  try {
    Settings settings;
    flatten(toml::parse(text), "", settings);
    return settings;
  } catch (const toml::parse_error& error) {
    return Problem{"launch.unreadable", fmt::format("line {}", error.source().begin.line), std::string(error.description()),
                   "paste the TOML file or the arguments of the job"};
  }
}

Outcome<Settings> read_json(std::string_view text) {
  Settings settings;
  const bool deep = json_nesting(text) > kMostNesting;
  const nlohmann::json parsed = deep ? nlohmann::json() : nlohmann::json::parse(text, nullptr, false);
  if (!parsed.is_object() || !flatten(parsed, "", settings, 0)) {
    return Problem{"launch.unreadable", "", "this is not a JSON object", "paste the whole configuration, braces included"};
  }
  return settings;
}

}  // namespace cpfit::launch
