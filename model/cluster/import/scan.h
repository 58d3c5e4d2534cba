// Reading text that anybody may have written: lines, words, bounded numbers, and quoting of what is shown back. Private to the
// importers. Nothing here throws.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/quantity/problem.h"

namespace cpfit::scan {

[[nodiscard]] std::string_view trimmed(std::string_view text);                          // blanks, tabs, carriage returns
[[nodiscard]] std::vector<std::string_view> lines(std::string_view text);               // without their ends
[[nodiscard]] std::vector<std::string_view> words(std::string_view text);               // between blanks and tabs
[[nodiscard]] std::string without_escapes(std::string_view text);                       // terminal colours and underlines
[[nodiscard]] std::optional<std::int64_t> whole(std::string_view text, int base = 10);  // all of it, not negative
[[nodiscard]] std::optional<double> number(std::string_view text);                      // all of it, finite, not negative
[[nodiscard]] bool same_word(std::string_view a, std::string_view b);                   // case does not count
[[nodiscard]] std::string lower(std::string_view text);
/// Up to 60 characters of it, what cannot be printed replaced by '?'.
[[nodiscard]] std::string shown(std::string_view text);
/// "mlx5_2" before "mlx5_10": runs of digits compare as numbers.
[[nodiscard]] bool natural_less(std::string_view a, std::string_view b);

/// Problem "import.<code>" at "file:line" (line 0: the file).
[[nodiscard]] Problem problem(const std::string& code, const std::string& where, std::size_t line, std::string message,
                              std::string repair = "");

}  // namespace cpfit::scan
