// The text of a file that a person named. Reading ends at a limit whatever the file is: a device without end, a disk image taken
// for a table.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "model/quantity/problem.h"

namespace cpfit {

inline constexpr std::size_t kMostWrittenBytes = std::size_t{16} << 20;  // of a text that a person wrote
inline constexpr std::size_t kMostTableBytes = std::size_t{256} << 20;   // of one that a program printed

/// Problem of that code, at `path`: a folder, cannot be opened, cannot be read to its end, more than `most` bytes.
[[nodiscard]] Outcome<std::string> read_text_file(const std::string& path, std::size_t most, const std::string& code);

/// JSON as a person may give it: what is printed or walked recursively is not nested deeper. Our own files have six levels.
inline constexpr std::size_t kMostNesting = 128;
/// The deepest nesting of brackets and braces outside quotes.
[[nodiscard]] std::size_t json_nesting(std::string_view text);

}  // namespace cpfit
