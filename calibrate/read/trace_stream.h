// What the readers of Chrome's trace JSON share: characters from disk for RapidJSON's iterative parser, where in the document it
// is, decimal times, what an event is by its category. Private to calibrate/read.
#pragma once

#include <fmt/format.h>
#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/read/trace.h"

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

/// Where in the document the parser is. Events lie in "traceEvents", or in an array that is the whole document.
class EventPlace {
 public:
  enum class Key : std::uint8_t { kElsewhere, kEvent, kArgument, kInfo };  // kInfo: of an object beside the events

  /// True where an event begins, where it ends, where the array of events begins.
  bool enter_object() {
    const bool event = ++depth_ == event_depth_;
    if (event) in_args_ = false;
    return event;
  }
  bool leave_object() { return depth_-- == event_depth_; }
  bool enter_array() {
    ++depth_;
    const bool events = depth_ == 1 || (depth_ == 2 && events_next_);
    if (events) event_depth_ = depth_ + 1;
    found_ = found_ || events;
    events_next_ = false;
    return events;
  }
  void leave_array() {
    if (depth_ + 1 == event_depth_) event_depth_ = kNowhere;
    --depth_;
  }
  Key key(std::string_view name) {
    if (depth_ == 1) {
      events_next_ = name == "traceEvents";
      kineto_ = kineto_ || name == "schemaVersion" || name == "deviceProperties";
    }
    if (depth_ == event_depth_) {
      in_args_ = name == "args";
      return Key::kEvent;
    }
    if (event_depth_ == kNowhere) return depth_ == 2 ? Key::kInfo : Key::kElsewhere;
    return depth_ == event_depth_ + 1 && in_args_ ? Key::kArgument : Key::kElsewhere;
  }

  [[nodiscard]] int depth() const { return depth_; }
  /// Below the values of an event and its arguments: in a list of one of them.
  [[nodiscard]] bool within_argument() const { return event_depth_ != kNowhere && depth_ > event_depth_ + 1; }
  [[nodiscard]] bool found() const { return found_; }
  [[nodiscard]] const char* format(bool ours) const { return ours ? "cpfit" : kineto_ ? "Kineto" : "Chrome"; }

 private:
  static constexpr int kNowhere = -1;
  int depth_ = 0, event_depth_ = kNowhere;
  bool events_next_ = false, found_ = false, in_args_ = false, kineto_ = false;
};

/// Work of a GPU by Kineto's categories; annotations of the GPU ("gpu_user_annotation") are no work.
inline std::optional<DeviceWork> recorded_work(std::string_view category, std::string_view name) {
  if (category == "kernel" || category == "Kernel") return communicates(name) ? DeviceWork::kCommunication : DeviceWork::kCompute;
  if (category == "gpu_memcpy" || category == "gpu_memset" || category == "Memcpy" || category == "Memset")
    return DeviceWork::kCopy;
  return std::nullopt;
}

inline bool marks_step(std::string_view category, std::string_view name) {
  return name.starts_with("ProfilerStep#") && (category == "user_annotation" || category == "gpu_user_annotation");
}
/// The host's mark of a step and the GPU's have one name: the GPU's stays.
inline void note_step(std::vector<TracedStep>& steps, TracedStep step) {
  constexpr std::size_t kMostSteps = 10000;
  const auto known = std::find_if(steps.begin(), steps.end(), [&](const TracedStep& s) { return s.name == step.name; });
  if (known == steps.end()) {
    if (steps.size() < kMostSteps) steps.push_back(std::move(step));
  } else if (step.on_gpu && !known->on_gpu) {
    *known = std::move(step);
  }
}

/// Iterative: a hostile nesting costs heap, not the stack. Numbers stay text: a double would lose the nanoseconds of absolute
/// stamps.
template <class Handler>
std::optional<Problem> parse_events(const std::string& path, ZlibStream& stream, Handler& handler) {
  rapidjson::Reader reader;
  constexpr unsigned kFlags = rapidjson::kParseIterativeFlag | rapidjson::kParseNumbersAsStringsFlag |
                              rapidjson::kParseNanAndInfFlag | rapidjson::kParseTrailingCommasFlag;
  const rapidjson::ParseResult parsed = reader.Parse<kFlags>(stream, handler);
  if (parsed) return std::nullopt;
  const std::string where = fmt::format("{}: byte {}", path, parsed.Offset());
  if (stream.failed() || stream.Peek() == '\0') {
    return Problem{"trace.syntax", where, "ends in the middle: the file is truncated or its compression is damaged",
                   "let the profiler finish writing, or copy the file again"};
  }
  return Problem{"trace.syntax", where, fmt::format("is no JSON here: {}", rapidjson::GetParseError_En(parsed.Code())),
                 "name a trace in JSON; a damaged one can be mended at that byte"};
}

}  // namespace cpfit::trace
