#include "model/quantity/text_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace cpfit {

Outcome<std::string> read_text_file(const std::string& path, std::size_t most, const std::string& code) {
  constexpr std::size_t kPiece = std::size_t{1} << 16;
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return Problem{code, path, "this is a folder", "name a file in it"};
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return Problem{code, path, std::string("the file cannot be opened: ") + std::strerror(errno), "check the path"};
  std::string text;
  if (const std::uintmax_t size = std::filesystem::file_size(path, ignored); !ignored && size <= most)
    text.reserve(size + kPiece);
  while (file && text.size() <= most) {
    const std::size_t before = text.size();
    text.resize(before + kPiece);
    file.read(text.data() + before, static_cast<std::streamsize>(kPiece));
    text.resize(before + static_cast<std::size_t>(file.gcount()));
  }
  if (file.bad()) return Problem{code, path, "the file cannot be read to its end", "check the disk"};
  if (text.size() > most) {
    return Problem{code, path, "the file has more than " + std::to_string(most >> 20) + " MiB",
                   "files of this kind are much smaller: is this the right one?"};
  }
  return text;
}

std::size_t json_nesting(std::string_view text) {
  std::size_t depth = 0, deepest = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      quoted = !quoted;
    } else if (quoted) {
      if (c == '\\') ++i;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

}  // namespace cpfit
