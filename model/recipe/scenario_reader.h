// Reads one table of a scenario file and keeps account: every key asked for is known, every value is checked where it stands,
// every problem carries path:line:column. Private to the scenario_*.cpp files; toml++ does not leave them.
#pragma once

#include <fmt/format.h>
#include <toml++/toml.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/quantity/problem.h"
#include "model/quantity/units.h"
#include "model/recipe/recipe_names.h"

namespace cpfit {
struct ScenarioInput;
}

namespace cpfit::scenario {

/// The file being read and what was found wrong with it so far.
struct Reading {
  std::string path;
  Problems problems;
  std::vector<std::pair<std::string, std::string>> inputs;  // path and text of the files that the scenario names
  const std::vector<ScenarioInput>* files = nullptr;        // the only files there are; null: those of the file system
  [[nodiscard]] std::string place(const toml::node& node) const;
  /// A path written in the file, relative to the file's folder.
  [[nodiscard]] std::string resolved(const std::string& written) const;
  /// Keeps the text of a file that was read, for the provenance of a run.
  void remember(const std::string& file);
  /// The text of a file among `files`; a problem where it is not there. Requires `files`.
  [[nodiscard]] Outcome<std::string> given(const std::string& file) const;
  void report(const toml::node& node, std::string_view code, std::string message, std::string repair);
  /// Takes over problems that do not know their place; `key` opens the message.
  void adopt(const toml::node& node, std::string_view key, const Problems& found);
};

/// One table. Getters return nothing when the key is absent or its value was refused (then a problem stands in Reading).
class Section {
 public:
  Section(const toml::table& table, std::string name, Reading& reading)
      : table_(table), name_(std::move(name)), reading_(reading) {}

  [[nodiscard]] const toml::node* node(std::string_view key);  // marks the key as known
  [[nodiscard]] std::optional<std::string> text(std::string_view key);
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view key, std::int64_t at_least, std::int64_t at_most);
  [[nodiscard]] std::optional<double> number(std::string_view key, double at_least, double at_most);
  [[nodiscard]] std::optional<bool> flag(std::string_view key);
  [[nodiscard]] std::optional<Tokens> tokens(std::string_view key, std::int64_t at_most);
  [[nodiscard]] std::optional<Bytes> bytes(std::string_view key);
  [[nodiscard]] std::optional<double> share(std::string_view key);
  [[nodiscard]] const toml::table* table(std::string_view key);

  template <class E>
  [[nodiscard]] std::optional<E> choice(std::string_view key) {
    const std::optional<std::string> word = text(key);
    if (!word) return std::nullopt;
    const std::optional<E> value = value_named<E>(*word);
    if (!value) adopt(key, {unknown_word("scenario.unknown_value", "", *word, names_of<E>())});
    return value;
  }

  /// "auto" (an empty list), one value or a list of values. `parse(const toml::node&, key)` gives an optional value and reports.
  template <class T, class Parse>
  [[nodiscard]] std::vector<T> axis(std::string_view key, Parse parse) {
    std::vector<T> values;
    const toml::node* found = node(key);
    if (found == nullptr || found->value<std::string>() == "auto") return values;
    const auto append = [&](const toml::node& item) {
      std::optional<T> value = parse(item, full_name(key));
      if (!value) return;
      for (const T& known : values) {
        if (known == *value) return;
      }
      values.push_back(std::move(*value));
    };
    const toml::array* list = found->as_array();
    if (list == nullptr) {
      append(*found);
    } else if (list->empty()) {
      reading_.report(*found, "scenario.empty_list", fmt::format("{} is an empty list", full_name(key)),
                      "write \"auto\" to try every legal value");
    } else {
      for (const toml::node& item : *list) append(item);
    }
    return values;
  }

  /// Reports a problem at a key that is present, or at the table when it is not.
  void report(std::string_view key, std::string_view code, std::string message, std::string repair);
  void adopt(std::string_view key, const Problems& found);
  /// The same of what lies in a file that the key names: the place there stays in the message.
  void adopt_file(std::string_view key, Problems found);
  /// Reports every key that no getter asked for.
  void finish();
  [[nodiscard]] std::string full_name(std::string_view key) const;
  [[nodiscard]] Reading& reading() { return reading_; }
  [[nodiscard]] const toml::table& body() const { return table_; }

 private:
  void wrong_type(const toml::node& found, std::string_view key, std::string_view wanted);

  const toml::table& table_;
  std::string name_;  // "training", "" for the top
  Reading& reading_;
  std::vector<std::string> known_;
};

/// Any scalar as a person would write it on a command line; nothing for lists and tables.
[[nodiscard]] std::optional<std::string> scalar_text(const toml::node& node);
/// "a list", "a table", "an integer" …
[[nodiscard]] std::string_view type_text(const toml::node& node);

/// A whole number within bounds, as an axis or a key holds it.
[[nodiscard]] std::optional<std::int64_t> whole_number(const toml::node& node, std::string_view key, std::int64_t at_least,
                                                       std::int64_t at_most, Reading& reading);
/// A token count: an integer, or text like "128k".
[[nodiscard]] std::optional<Tokens> token_count(const toml::node& node, std::string_view key, std::int64_t at_most,
                                                Reading& reading);

inline constexpr std::int64_t kMaxSequence = std::int64_t{1} << 30;  // tokens; no published run is within a factor of 100

}  // namespace cpfit::scenario
