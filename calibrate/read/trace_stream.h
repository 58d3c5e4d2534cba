// Chrome's trace JSON as it comes from disk: characters for RapidJSON's iterative parser, and its decimal times. Private to
// calibrate/read.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace cpfit::trace {

/// RapidJSON's input stream over a plain or gzip file.
class ZlibStream {
 public:
  using Ch = char;
  explicit ZlibStream(gzFile file) : file_(file), buffer_(kSize) { fill(); }
  [[nodiscard]] char Peek() const { return at_ < end_ ? buffer_[at_] : '\0'; }
  char Take() {
    const char c = Peek();
    if (at_ < end_ && ++at_ == end_) fill();
    return c;
  }
  [[nodiscard]] std::size_t Tell() const { return before_ + at_; }
  [[nodiscard]] bool failed() const { return failed_; }
  // Of an output stream; the reader wants them declared.
  char* PutBegin() { return nullptr; }
  void Put(char) {}
  void Flush() {}
  std::size_t PutEnd(char*) { return 0; }

 private:
  static constexpr std::size_t kSize = std::size_t{1} << 18U;
  void fill() {
    before_ += end_;
    at_ = end_ = 0;
    const int read = gzread(file_, buffer_.data(), static_cast<unsigned>(kSize));
    if (read < 0) failed_ = true;
    if (read > 0) end_ = static_cast<std::size_t>(read);
  }
  gzFile file_;
  std::vector<char> buffer_;
  std::size_t at_ = 0, end_ = 0, before_ = 0;
  bool failed_ = false;
};

/// A decimal number of microseconds as picoseconds; digits beyond are cut. Nothing when it is no plain decimal or too large.
inline std::optional<std::int64_t> picoseconds(std::string_view text, std::int64_t origin_us) {
  bool negative = false;
  std::size_t i = 0;
  if (i < text.size() && text[i] == '-') {
    negative = true;
    ++i;
  }
  std::int64_t whole = 0, part = 0, scale = 1'000'000;
  for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) {
    if (whole > INT64_MAX / 10 - 9) return std::nullopt;
    whole = whole * 10 + (text[i] - '0');
  }
  if (i < text.size() && text[i] == '.') {
    for (++i; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) {
      scale /= 10;
      part += (text[i] - '0') * scale;
    }
  }
  if (i != text.size()) return std::nullopt;  // an exponent: see below
  const std::int64_t us = (negative ? -whole : whole) - origin_us;
  if (us > INT64_MAX / 1'000'001 || us < -(INT64_MAX / 1'000'001)) return std::nullopt;
  return us * 1'000'000 + (negative ? -part : part);
}

inline std::int64_t whole_microseconds(std::string_view text) {
  std::int64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') break;
    if (value > INT64_MAX / 10 - 9) break;
    value = value * 10 + (c - '0');
  }
  return text.starts_with('-') ? 0 : value;
}

struct CloseFile {
  void operator()(gzFile file) const { gzclose(file); }
};

}  // namespace cpfit::trace
