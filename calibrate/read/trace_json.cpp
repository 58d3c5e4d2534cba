// Chrome's trace JSON as a stream of tokens: RapidJSON's iterative parser over zlib, no document in memory. Times are read as the
// decimal text they are (microseconds, three or more decimals) into integer picoseconds; a double would lose nanoseconds of the
// absolute stamps that profilers write.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>

#include "calibrate/read/trace_rank_names.h"
#include "calibrate/read/trace_sources.h"
#include "calibrate/read/trace_stream.h"

namespace cpfit::trace {

namespace {

/// A short text without allocation: what is longer is cut, and nobody needs more of it.
template <std::size_t kRoom>
class ShortText {
 public:
  void clear() { size_ = 0; }
  void set(const char* text, std::size_t size) {
    size_ = std::min(size, kRoom);
    std::memcpy(text_.data(), text, size_);
  }
  [[nodiscard]] std::string_view view() const { return {text_.data(), size_}; }
  [[nodiscard]] bool empty() const { return size_ == 0; }

 private:
  std::array<char, kRoom> text_{};
  std::size_t size_ = 0;
};

enum class Field : std::uint8_t {
  kOther,
  kPhase,
  kCategory,
  kName,
  kStart,
  kDuration,
  kProcess,
  kThread,
  kStream,
  kDevice,
  kGiven
};

/// Follows where in the document the reader is and hands each event on when it ends.
class EventHandler : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, EventHandler> {
 public:
  explicit EventHandler(RecordedTrace& trace) : trace_(trace), devices_(trace) {}

  bool Default() { return true; }
  bool RawNumber(const char* text, rapidjson::SizeType size, bool) { return value(text, size); }
  bool String(const char* text, rapidjson::SizeType size, bool) { return value(text, size); }
  bool Key(const char* text, rapidjson::SizeType size, bool) {
    key({text, size});
    return true;
  }
  bool StartObject() {
    if (place_.enter_object()) begin_event();
    return true;
  }
  bool EndObject(rapidjson::SizeType) {
    if (place_.leave_object()) end_event();
    field_ = Field::kOther;
    return true;
  }
  bool StartArray() {
    place_.enter_array();
    return true;
  }
  bool EndArray(rapidjson::SizeType) {
    place_.leave_array();
    return true;
  }

  [[nodiscard]] bool found() const { return place_.found(); }
  [[nodiscard]] const char* format() const { return place_.format(ours_); }
  /// After the last event: which rank each device is, where the trace says so.
  void name_ranks() {
    for (TracedDevice& device : trace_.devices) {
      if (const auto found = ranks_.find(device.name); found != ranks_.end()) device.rank = found->second;
    }
  }
  [[nodiscard]] std::int64_t unreadable_times() const { return unreadable_times_; }

 private:
  void key(std::string_view name) {
    field_ = Field::kOther;
    switch (place_.key(name)) {
      case EventPlace::Key::kEvent:
        field_ = event_field(name);
        break;
      case EventPlace::Key::kArgument:
        if (name == "stream") field_ = Field::kStream;
        if (name == "device") field_ = Field::kDevice;
        if (name == "name") field_ = Field::kGiven;
        break;
      case EventPlace::Key::kInfo:
        wants_rank_ = name == "rank";
        wants_generator_ = name == "generator";
        break;
      case EventPlace::Key::kElsewhere:
        break;
    }
  }

  static Field event_field(std::string_view name) {
    if (name == "ph") return Field::kPhase;
    if (name == "cat") return Field::kCategory;
    if (name == "name") return Field::kName;
    if (name == "ts") return Field::kStart;
    if (name == "dur") return Field::kDuration;
    if (name == "pid") return Field::kProcess;
    if (name == "tid") return Field::kThread;
    return Field::kOther;
  }

  bool value(const char* text, std::size_t size) {
    if (wants_rank_) trace_.rank = whole_microseconds({text, size});
    if (wants_generator_) ours_ = std::string_view(text, size) == "cpfit";
    wants_rank_ = wants_generator_ = false;
    switch (field_) {
      case Field::kOther:
        return true;
      case Field::kPhase:
        phase_ = size == 1 ? text[0] : ' ';
        break;
      case Field::kCategory:
        category_.set(text, size);
        break;
      case Field::kName:
        name_.set(text, size);
        break;
      case Field::kStart:
        start_.set(text, size);
        break;
      case Field::kDuration:
        duration_.set(text, size);
        break;
      case Field::kProcess:
        process_.set(text, size);
        break;
      case Field::kThread:
        thread_.set(text, size);
        break;
      case Field::kStream:
        stream_.set(text, size);
        break;
      case Field::kDevice:
        device_.set(text, size);
        break;
      case Field::kGiven:
        given_.set(text, size);
        break;
    }
    field_ = Field::kOther;
    return true;
  }

  void begin_event() {
    phase_ = ' ';
    category_.clear();
    name_.clear();
    start_.clear();
    duration_.clear();
    process_.clear();
    thread_.clear();
    stream_.clear();
    device_.clear();
    given_.clear();
  }

  void end_event() {
    ++trace_.events;
    if (phase_ == 'M' && ours_ && name_.view() == "process_name") {
      if (const auto rank = named_rank(given_.view())) ranks_[std::string(process_.view())] = *rank;
    }
    if (phase_ != 'X') return;
    if (marks_step(category_.view(), name_.view())) return add_step();
    const std::optional<DeviceWork> work = ours_ ? simulated_work() : recorded_work(category_.view(), name_.view());
    if (!work) return;
    if (!origin_) origin_ = whole_microseconds(start_.view());
    const std::optional<std::int64_t> start = picoseconds(start_.view(), *origin_);
    const std::optional<std::int64_t> duration = duration_.empty() ? 0 : picoseconds(duration_.view(), 0);
    if (!start || !duration || start_.empty()) {
      ++unreadable_times_;
      return;
    }
    const std::string_view device = ours_ || device_.empty() ? process_.view() : device_.view();
    const std::string_view stream = ours_ || stream_.empty() ? thread_.view() : stream_.view();
    devices_.add(device, stream, *start, *start + *duration, *work);
  }

  void add_step() {
    if (!origin_) origin_ = whole_microseconds(start_.view());
    const std::optional<std::int64_t> start = picoseconds(start_.view(), *origin_);
    const std::optional<std::int64_t> duration = picoseconds(duration_.view(), 0);
    if (!start || !duration || start_.empty()) return;
    note_step(trace_.steps, {std::string(name_.view()), *start, *start + *duration, category_.view() == "gpu_user_annotation"});
  }

  /// Slices of `cpfit simulate --trace`: every lane's slice is work of the rank.
  [[nodiscard]] DeviceWork simulated_work() const {
    const std::string_view category = category_.view();
    for (const std::string_view axis : {"cp", "tp", "pp", "dp"}) {
      if (category == axis) return DeviceWork::kCommunication;
    }
    return DeviceWork::kCompute;
  }

  RecordedTrace& trace_;
  Devices devices_;
  EventPlace place_;
  bool wants_rank_ = false, wants_generator_ = false, ours_ = false;
  Field field_ = Field::kOther;
  char phase_ = ' ';
  ShortText<24> category_;
  ShortText<48> name_, given_;
  std::map<std::string, std::int64_t> ranks_;  // by process
  ShortText<40> start_, duration_, process_, thread_, stream_, device_;
  std::optional<std::int64_t> origin_;
  std::int64_t unreadable_times_ = 0;
};

}  // namespace

Outcome<RecordedTrace> read_json(const std::string& path) {
  const std::unique_ptr<gzFile_s, CloseFile> file(gzopen(path.c_str(), "rb"));
  if (!file) return Problem{"trace.unreadable", path, "cannot be opened", "check the path and its permissions"};
  gzbuffer(file.get(), 1U << 18U);
  RecordedTrace trace;
  trace.path = path;
  ZlibStream stream(file.get());
  EventHandler handler(trace);
  if (std::optional<Problem> problem = parse_events(path, stream, handler)) return std::move(*problem);
  handler.name_ranks();
  if (!handler.found()) {
    return Problem{"trace.no_events", path, "is JSON, but no trace: it has no \"traceEvents\"",
                   "name a Kineto / PyTorch profiler trace or a Chrome trace"};
  }
  std::sort(trace.steps.begin(), trace.steps.end(), [](const TracedStep& a, const TracedStep& b) { return a.start < b.start; });
  trace.format = handler.format();
  if (trace.devices.empty()) {
    return Problem{"trace.no_events", path,
                   fmt::format("holds {} events, but no work of a GPU (category \"kernel\")", trace.events),
                   "record with activities=[CPU, CUDA]"};
  }
  if (handler.unreadable_times() > 0) {
    trace.remarks.push_back(
        {"trace.times", path,
         fmt::format("{} events of the GPU have no readable time and were left out", handler.unreadable_times()), ""});
  }
  return trace;
}

}  // namespace cpfit::trace
