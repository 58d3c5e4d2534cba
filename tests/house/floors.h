// Who may include whom, as data: the floors of the house, the libraries, and one judgement per #include line.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cpfit::house {

/// A third-party library, known by how its headers are written between the angle brackets.
struct Library {
  std::string_view name;
  std::vector<std::string_view> headers;  // prefixes: "boost/", "zlib.h"
};

/// One folder of the house. The rule with the longest folder that contains a file holds for it.
struct Floor {
  std::string_view folder;                    // "model", "calibrate/fit"
  std::vector<std::string_view> may_include;  // folders of the house, itself included
  std::vector<std::string_view> libraries;    // Library names, anywhere in the folder
  std::vector<std::string_view> in_sources;   // Library names that stay inside their folder: see leaks()
  std::vector<std::string_view> std_refused;  // standard headers that do not belong here
};

[[nodiscard]] const std::vector<Library>& libraries();
[[nodiscard]] const std::vector<Floor>& floors();

/// What is wrong with `line` of the file at `path` (relative to the root of the tree, "/" between folders): one sentence, or
/// nothing when the line is no #include or is allowed.
[[nodiscard]] std::optional<std::string> judge_include(std::string_view path, std::string_view line);

/// One #include of one of our own headers or of a library's.
struct Include {
  std::string from;  // path from the root
  std::string name;  // what stands between the quotes or brackets
};

/// The #include of `line`, if it is one that names a file.
[[nodiscard]] std::optional<Include> read_include(std::string_view path, std::string_view line);

/// A header that meets a library of its floor's `in_sources`, itself or through another header, is private: nobody outside its
/// folder may include it, so that the library can be replaced by touching one folder. One sentence per offence.
[[nodiscard]] std::vector<std::string> leaks(const std::vector<Include>& includes);

}  // namespace cpfit::house
