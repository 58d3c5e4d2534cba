#include "calibrate/read/log_lines.h"

#include <charconv>
#include <cstring>

namespace cpfit {

namespace {

/// Digits at the beginning of `text` as a rank; how many characters they are.
std::size_t rank_at(std::string_view text, std::int64_t& rank) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (error != std::errc{} || rank < 0 || rank > (std::int64_t{1} << 24U)) return 0;
  return static_cast<std::size_t>(end - text.data());
}

/// Without escape sequences (colours, cursor) and other control characters but tabs.
void clean(std::string_view raw, std::string& into) {
  into.clear();
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const auto c = static_cast<unsigned char>(raw[i]);
    if (c == 0x1b) {
      if (i + 1 < raw.size() && raw[i + 1] == '[') {  // to the letter that ends it
        for (i += 2; i < raw.size() && (raw[i] < '@' || raw[i] > '~'); ++i) {
        }
      } else {
        ++i;
      }
    } else if (c >= 0x20 || c == '\t') {
      into += raw[i];
    }
  }
}

}  // namespace

std::string_view without_rank(std::string_view line, std::int64_t& rank, bool& local) {
  rank = -1;
  local = false;
  std::int64_t found = -1;
  for (const std::string_view prefix : {"[rank", "[default"}) {
    if (!line.starts_with(prefix)) continue;
    const std::string_view rest = line.substr(prefix.size());
    const std::size_t digits = rank_at(rest, found);
    if (digits == 0 || !rest.substr(digits).starts_with("]:")) continue;
    rank = found;
    local = prefix == "[default";
    return rest.substr(digits + 2);
  }
  if (line.starts_with("[")) {
    const std::size_t comma = line.find(',');
    if (comma < 12) {
      const std::string_view rest = line.substr(comma + 1);
      const std::size_t digits = rank_at(rest, found);
      for (const std::string_view tag : {"]<stdout>:", "]<stderr>:"}) {
        if (digits == 0 || !rest.substr(digits).starts_with(tag)) continue;
        rank = found;
        return rest.substr(digits + tag.size());
      }
    }
    return line;
  }
  const std::size_t begin = line.find_first_not_of(' ');
  if (begin == std::string_view::npos || begin > 8) return line;
  const std::size_t digits = rank_at(line.substr(begin), found);
  if (digits == 0 || digits > 7 || !line.substr(begin + digits).starts_with(": ")) return line;
  rank = found;
  return line.substr(begin + digits + 2);
}

LogLines::LogLines(std::istream& stream) : stream_(stream), buffer_(std::size_t{1} << 16U) {}

bool LogLines::read_raw() {
  raw_.clear();
  bool any = false, too_long = false;
  while (true) {
    if (at_ == end_) {
      stream_.read(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
      at_ = 0;
      end_ = static_cast<std::size_t>(stream_.gcount());
      if (end_ == 0) {
        complete_ = false;
        cut_ += too_long ? 1 : 0;
        return any;
      }
    }
    any = true;
    const char* begin = buffer_.data() + at_;
    const auto* found = static_cast<const char*>(std::memchr(begin, '\n', end_ - at_));
    const std::size_t part = found == nullptr ? end_ - at_ : static_cast<std::size_t>(found - begin);
    const std::size_t taken = std::min(part, kLongestLine - raw_.size());
    too_long = too_long || taken < part;
    if (!binary_ && std::memchr(begin, 0, part) != nullptr) binary_ = true;
    raw_.append(begin, taken);
    at_ += part + (found == nullptr ? 0 : 1);
    if (found != nullptr) {
      complete_ = true;
      cut_ += too_long ? 1 : 0;
      return true;
    }
  }
}

bool LogLines::next(LogLine& line) {
  if (!read_raw()) return false;
  clean(raw_, clean_);
  line.number = ++number_;
  line.complete = complete_;
  line.text = without_rank(clean_, line.rank, line.local);
  return true;
}

}  // namespace cpfit
