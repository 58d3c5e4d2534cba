// Lines and words of tool outputs. Private to calibrate/read.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cpfit {

inline std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t' || text.front() == '\r')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

inline std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  std::size_t at = 0;
  while (at < line.size()) {
    while (at < line.size() && (line[at] == ' ' || line[at] == '\t' || line[at] == '\r')) ++at;
    const std::size_t begin = at;
    while (at < line.size() && line[at] != ' ' && line[at] != '\t' && line[at] != '\r') ++at;
    if (at > begin) words.push_back(line.substr(begin, at - begin));
  }
  return words;
}

/// Calls `use(line, number from 1)` for every line of the text.
template <class Use>
void each_line(std::string_view text, Use use) {
  long number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    use(text.substr(0, end), ++number);
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

/// The whole text as a number.
template <class Number>
std::optional<Number> number_of(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// What follows `key` in `line` up to a blank or comma: after(line, "headdim=") of "causal=False, headdim=64" is "64". Blanks
/// around
/// '=' do not matter: write the key without it.
inline std::string_view value_after(std::string_view line, std::string_view key) {
  for (std::size_t at = line.find(key); at != std::string_view::npos; at = line.find(key, at + 1)) {
    std::string_view rest = line.substr(at + key.size());
    while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
    if (rest.empty() || rest.front() != '=') continue;
    rest.remove_prefix(1);
    while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
    return rest.substr(0, rest.find_first_of(" ,\r\n"));
  }
  return {};
}

}  // namespace cpfit
