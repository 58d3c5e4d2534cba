#include "model/cluster/import/yaml.h"

#include <fmt/format.h>

#include "model/cluster/import/scan.h"

namespace cpfit {
namespace {

constexpr std::size_t kMostLines = 500'000;
constexpr int kMostDepth = 32;

struct Line {
  std::size_t number = 0;
  std::size_t indent = 0;
  std::string_view text;
};

/// Without a comment: '#' at the start or after a blank, outside quotes.
std::string_view without_comment(std::string_view line) {
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (quote != 0) {
      if (line[i] == quote) quote = 0;
    } else if (line[i] == '"' || line[i] == '\'') {
      quote = line[i];
    } else if (line[i] == '#' && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t')) {
      return line.substr(0, i);
    }
  }
  return line;
}

std::string scalar(std::string_view text) {
  text = scan::trimmed(text);
  if (text.size() >= 2 && (text[0] == '"' || text[0] == '\'') && text.back() == text[0]) text = text.substr(1, text.size() - 2);
  return std::string(text);
}

/// Where the key of "key: value" or "key:" ends; npos when the text is no pair.
std::size_t colon_of(std::string_view text) {
  if (text.empty() || text[0] == '{' || text[0] == '[' || text[0] == '"' || text[0] == '\'') return std::string_view::npos;
  for (std::size_t at = text.find(':'); at != std::string_view::npos; at = text.find(':', at + 1)) {
    if (at + 1 == text.size() || text[at + 1] == ' ' || text[at + 1] == '\t') return at;
  }
  return std::string_view::npos;
}

class YamlReader {
 public:
  YamlReader(std::vector<Line> lines, const std::string& where) : lines_(std::move(lines)), where_(where) {}

  Outcome<YamlNode> read() {
    YamlNode root;
    if (!lines_.empty()) root = block(lines_[0].indent, 0);
    if (problems_.empty() && at_ < lines_.size()) fail(lines_[at_], "the indentation fits nothing above");
    if (!problems_.empty()) return problems_;
    return root;
  }

 private:
  void fail(const Line& line, std::string message) {
    if (problems_.empty())
      problems_.push_back(scan::problem("yaml", where_, line.number, std::move(message), "check the indentation of this line"));
    at_ = lines_.size();
  }

  static bool is_item(std::string_view text) { return text == "-" || text.starts_with("- "); }

  YamlNode block(std::size_t indent, int depth) {
    YamlNode node;
    node.line = lines_[at_].number;
    if (depth > kMostDepth) {
      fail(lines_[at_], fmt::format("nested more than {} deep", kMostDepth));
      return node;
    }
    const bool sequence = is_item(lines_[at_].text);
    while (at_ < lines_.size() && lines_[at_].indent == indent && is_item(lines_[at_].text) == sequence) {
      if (sequence) {
        item(node, depth);
      } else {
        pair(node, indent, depth);
      }
    }
    return node;
  }

  /// "- value", or "- key: value" that opens a mapping two columns in: the dash is taken off the line.
  void item(YamlNode& sequence, int depth) {
    Line& line = lines_[at_];
    const std::string_view rest = scan::trimmed(line.text.substr(1));
    if (rest.empty()) {
      const std::size_t indent = line.indent;
      ++at_;
      sequence.items.push_back(at_ < lines_.size() && lines_[at_].indent > indent ? block(lines_[at_].indent, depth + 1)
                                                                                  : YamlNode{});
    } else if (colon_of(rest) != std::string_view::npos || is_item(rest)) {
      line.indent += line.text.size() - rest.size();
      line.text = rest;
      sequence.items.push_back(block(line.indent, depth + 1));
    } else {
      YamlNode value;
      value.line = line.number;
      value.text = scalar(rest);
      sequence.items.push_back(std::move(value));
      ++at_;
    }
  }

  void pair(YamlNode& mapping, std::size_t indent, int depth) {
    const Line line = lines_[at_];
    const std::size_t colon = colon_of(line.text);
    if (colon == std::string_view::npos)
      return fail(line, fmt::format("'{}' is neither \"key: value\" nor \"- item\"", scan::shown(line.text)));
    const std::string_view rest = scan::trimmed(line.text.substr(colon + 1));
    YamlNode value;
    value.line = line.number;
    ++at_;
    if (!rest.empty()) {
      value.text = scalar(rest);
    } else if (at_ < lines_.size() &&
               (lines_[at_].indent > indent || (lines_[at_].indent == indent && is_item(lines_[at_].text)))) {
      value = block(lines_[at_].indent, depth + 1);
    }
    mapping.pairs.emplace_back(scalar(line.text.substr(0, colon)), std::move(value));
  }

  std::vector<Line> lines_;
  const std::string& where_;
  Problems problems_;
  std::size_t at_ = 0;
};

}  // namespace

const YamlNode* YamlNode::find(std::string_view key) const {
  for (const auto& [name, value] : pairs) {
    if (name == key) return &value;
  }
  return nullptr;
}

Outcome<YamlNode> parse_yaml(std::string_view text, const std::string& where) {
  std::vector<Line> lines;
  std::size_t number = 0;
  for (std::string_view raw : scan::lines(text)) {
    ++number;
    if (number > kMostLines) return scan::problem("too_large", where, 0, fmt::format("more than {} lines", kMostLines));
    const std::size_t indent = raw.find_first_not_of(' ');
    if (indent == std::string_view::npos) continue;
    const std::string_view line = scan::trimmed(without_comment(raw));
    if (line.empty() || line == "---" || line == "...") continue;
    if (raw[indent] == '\t') return scan::problem("yaml", where, number, "a tab is used as indentation", "use blanks");
    lines.push_back({number, indent, line});
  }
  return YamlReader(std::move(lines), where).read();
}

}  // namespace cpfit
