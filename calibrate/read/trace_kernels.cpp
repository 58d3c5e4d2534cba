#include "calibrate/read/trace_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <tuple>

#include "calibrate/read/trace_rank_names.h"
#include "calibrate/read/trace_stream.h"

namespace cpfit {

namespace {

constexpr std::size_t kLongestField = 400;                 // of sizes and names; longer ones are of no use
constexpr std::size_t kMostOperators = 1u << 20U;          // with sizes
constexpr std::int64_t kLongest = std::int64_t{1} << 61U;  // picoseconds: a month

enum Slot : std::uint8_t {
  kPhase,
  kCategory,
  kName,
  kStart,
  kDuration,
  kProcess,
  kThread,
  kStream,
  kDevice,
  kExternal,
  kCollective,
  kIn,
  kOut,
  kSize,
  kDtype,
  kGroup,
  kGroupName,
  kMembers,
  kDims,
  kTypes,
  kConcrete,
  kGiven,
  kSlots
};

struct FieldName {
  std::string_view name;
  Slot slot;
};
constexpr FieldName kEventFields[] = {{"ph", kPhase},     {"cat", kCategory}, {"name", kName}, {"ts", kStart},
                                      {"dur", kDuration}, {"pid", kProcess},  {"tid", kThread}};
constexpr FieldName kArgumentFields[] = {{"stream", kStream},
                                         {"device", kDevice},
                                         {"External id", kExternal},
                                         {"external id", kExternal},
                                         {"Collective name", kCollective},
                                         {"In msg nelems", kIn},
                                         {"Out msg nelems", kOut},
                                         {"Group size", kSize},
                                         {"dtype", kDtype},
                                         {"Process Group Description", kGroup},
                                         {"Process Group Name", kGroupName},
                                         {"Process Group Ranks", kMembers},
                                         {"Input Dims", kDims},
                                         {"Input type", kTypes},
                                         {"Concrete Inputs", kConcrete},
                                         {"name", kGiven}};

template <std::size_t kCount>
std::optional<Slot> slot_of(const FieldName (&fields)[kCount], std::string_view name) {
  for (const FieldName& field : fields) {
    if (field.name == name) return field.slot;
  }
  return std::nullopt;
}

bool useful_operator(std::string_view name) {
  return name == "aten::mm" || name == "aten::addmm" || name.starts_with("aten::_scaled_dot_product_");
}

std::int64_t whole(std::string_view text, std::int64_t otherwise) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != std::string_view::npos) return otherwise;
  const std::int64_t value = trace::whole_microseconds(text);
  return negative ? -value : value;
}

class KernelHandler : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, KernelHandler> {
 public:
  explicit KernelHandler(KernelTrace& trace) : trace_(trace) {}

  bool Null() { return value("null", false); }
  bool Bool(bool yes) { return value(yes ? "true" : "false", false); }
  bool RawNumber(const char* text, rapidjson::SizeType size, bool) { return value({text, size}, false); }
  bool String(const char* text, rapidjson::SizeType size, bool) { return value({text, size}, true); }
  bool Key(const char* text, rapidjson::SizeType size, bool) {
    key({text, size});
    return true;
  }
  bool StartObject() {
    if (place_.enter_object()) begin_event();
    if (in_devices_ && place_.depth() == 3) ++trace_.host_gpus;
    return true;
  }
  bool EndObject(rapidjson::SizeType) {
    if (place_.leave_object()) end_event();
    capture_ = kSlots;
    return true;
  }
  bool StartArray() {
    if (!place_.enter_array() && capturing()) {
      separate();
      add("[");
    }
    return true;
  }
  bool EndArray(rapidjson::SizeType) {
    if (capturing()) add("]");
    if (place_.depth() == 2) in_devices_ = false;
    place_.leave_array();
    if (!place_.within_argument()) capture_ = kSlots;
    return true;
  }

  [[nodiscard]] bool found() const { return place_.found(); }

  void finish() {
    trace_.format = place_.format(ours_);
    for (auto& [name, kernels] : devices_) trace_.devices.emplace_back(name, std::move(kernels));
    std::sort(trace_.devices.begin(), trace_.devices.end(), [](const auto& a, const auto& b) {
      return a.first.size() != b.first.size() ? a.first.size() < b.first.size() : a.first < b.first;
    });
    std::sort(trace_.steps.begin(), trace_.steps.end(),
              [](const TracedStep& a, const TracedStep& b) { return a.start < b.start; });
  }

 private:
  [[nodiscard]] bool capturing() const { return capture_ < kSlots && place_.within_argument(); }
  void add(std::string_view text) {
    std::string& slot = slots_[capture_];
    if (slot.size() + text.size() <= kLongestField) slot += text;
  }
  void separate() {
    const std::string& slot = slots_[capture_];
    if (!slot.empty() && slot.back() != '[') add(",");
  }
  void key(std::string_view name) {
    capture_ = kSlots;
    wants_ = Wanted::kNothing;
    if (place_.depth() == 1) in_devices_ = name == "deviceProperties";
    switch (place_.key(name)) {
      case trace::EventPlace::Key::kEvent:
        capture_ = slot_of(kEventFields, name).value_or(kSlots);
        break;
      case trace::EventPlace::Key::kArgument:
        capture_ = slot_of(kArgumentFields, name).value_or(kSlots);
        break;
      case trace::EventPlace::Key::kInfo:
        if (name == "rank") wants_ = Wanted::kRank;
        if (name == "generator") wants_ = Wanted::kGenerator;
        break;
      case trace::EventPlace::Key::kElsewhere:
        if (in_devices_ && place_.depth() == 3 && name == "name") wants_ = Wanted::kGpu;
        break;
    }
  }
  bool value(std::string_view text, bool quoted) {
    if (wants_ == Wanted::kRank) trace_.rank = whole(text, 0);
    if (wants_ == Wanted::kGenerator) ours_ = text == "cpfit";
    if (wants_ == Wanted::kGpu && trace_.gpu.empty()) trace_.gpu = std::string(text.substr(0, 100));
    wants_ = Wanted::kNothing;
    if (capture_ == kSlots) return true;
    if (capturing()) {  // an element of a list of sizes
      separate();
      if (quoted) add("\"");
      add(text);
      if (quoted) add("\"");
      return true;
    }
    slots_[capture_].assign(text.substr(0, kLongestField));
    capture_ = kSlots;
    return true;
  }
  void begin_event() {
    for (std::string& slot : slots_) slot.clear();
  }
  [[nodiscard]] std::string_view at(Slot slot) const { return slots_[slot]; }

  void end_event() {
    if (at(kPhase) == "M" && ours_ && at(kName) == "process_name") {
      if (const auto rank = trace::named_rank(at(kGiven))) trace_.ranks[std::string(at(kProcess))] = *rank;
    }
    if (at(kPhase) != "X") return;
    if (at(kCategory) == "cpu_op") return add_operator();
    const bool mark = trace::marks_step(at(kCategory), at(kName));
    TracedKernel kernel;
    if (!mark && !classify(kernel)) return;
    if (!origin_) origin_ = trace::whole_microseconds(at(kStart));
    const std::optional<std::int64_t> start = trace::picoseconds(at(kStart), *origin_);
    const std::optional<std::int64_t> duration = at(kDuration).empty() ? 0 : trace::picoseconds(at(kDuration), 0);
    if (at(kStart).empty() || !start || !duration || *duration < 0 || *duration > kLongest || *start > kLongest ||
        *start < -kLongest)
      return;
    if (mark) {
      return trace::note_step(trace_.steps,
                              {std::string(at(kName)), *start, *start + *duration, at(kCategory) == "gpu_user_annotation"});
    }
    kernel.start = *start;
    kernel.end = *start + *duration;
    kernel.external = whole(at(kExternal), -1);
    kernel.stream = static_cast<std::int32_t>(whole(at(kStream).empty() || ours_ ? at(kThread) : at(kStream), 0) & 0x7fffffff);
    const std::string_view device = ours_ || at(kDevice).empty() ? at(kProcess) : at(kDevice);
    if (!at(kCollective).empty()) kernel.message = message();
    devices_[std::string(device)].push_back(kernel);
  }
  bool classify(TracedKernel& kernel) const {
    const std::string_view category = at(kCategory);
    if (ours_) {
      kernel.work = DeviceWork::kCompute;
      for (const MessageAxis axis : {MessageAxis::kCp, MessageAxis::kTp, MessageAxis::kPp, MessageAxis::kDp}) {
        if (category != name_of(axis)) continue;
        kernel.work = DeviceWork::kCommunication;
        kernel.axis = axis;
      }
      return true;
    }
    const std::optional<DeviceWork> work = trace::recorded_work(category, at(kName));
    kernel.work = work.value_or(DeviceWork::kCopy);
    if (kernel.work == DeviceWork::kCommunication) kernel.axis = axis_of_group(at(kGroup));
    return work.has_value();
  }
  std::int32_t message() {
    TracedMessage message{std::string(at(kCollective)), std::string(at(kDtype)),     whole(at(kIn), 0),        whole(at(kOut), 0),
                          whole(at(kSize), 0),          std::string(at(kGroupName)), std::string(at(kMembers))};
    const auto as_key =
        std::tuple(message.collective, message.dtype, message.in_elements, message.out_elements, message.ranks, message.group);
    const auto [found, is_new] = known_messages_.try_emplace(as_key, static_cast<std::int32_t>(trace_.messages.size()));
    if (is_new) trace_.messages.push_back(std::move(message));
    return found->second;
  }
  void add_operator() {
    if (!useful_operator(at(kName)) || at(kDims).empty() || at(kDims).size() >= kLongestField ||
        trace_.operators.size() >= kMostOperators)
      return;
    const std::int64_t id = whole(at(kExternal), -1);
    if (id < 0) return;
    trace_.operators[id] = {std::string(at(kName)), std::string(at(kDims)), std::string(at(kTypes)), std::string(at(kConcrete))};
  }
  enum class Wanted : std::uint8_t { kNothing, kRank, kGenerator, kGpu };
  KernelTrace& trace_;
  std::map<std::string, std::vector<TracedKernel>> devices_;
  std::map<std::tuple<std::string, std::string, std::int64_t, std::int64_t, std::int64_t, std::string>, std::int32_t>
      known_messages_;
  std::array<std::string, kSlots> slots_;
  trace::EventPlace place_;
  bool in_devices_ = false, ours_ = false;
  Wanted wants_ = Wanted::kNothing;
  Slot capture_ = kSlots;
  std::optional<std::int64_t> origin_;
};

}  // namespace

std::string_view name_of(MessageAxis axis) {
  constexpr std::array<std::string_view, kMessageAxes> kNames = {"cp", "tp", "pp", "dp", "unknown"};
  return kNames.at(static_cast<std::size_t>(axis));
}

MessageAxis axis_of_group(std::string_view description) {
  const auto holds = [&](std::string_view part) { return description.find(part) != std::string_view::npos; };
  if (holds("DATA_PARALLEL") || description.starts_with("mesh_dp") || description.starts_with("mesh_fsdp") ||
      description.starts_with("mesh_hsdp")) {
    return MessageAxis::kDp;
  }
  if (holds("PIPELINE_MODEL_PARALLEL") || holds("EMBEDDING_GROUP") || description == "mesh_pp") return MessageAxis::kPp;
  if (holds("TENSOR_AND_")) return MessageAxis::kUnknown;  // Megatron's groups over tensor and other ranks together
  const bool tensor = holds("TENSOR_MODEL_PARALLEL") || description == "mesh_tp";
  const bool context = holds("CONTEXT_PARALLEL") || description == "mesh_cp";
  return tensor ? MessageAxis::kTp : context ? MessageAxis::kCp : MessageAxis::kUnknown;
}

Outcome<KernelTrace> read_kernel_trace(const std::string& path) {
  errno = 0;
  const std::unique_ptr<gzFile_s, trace::CloseFile> file(gzopen(path.c_str(), "rb"));
  if (!file)
    return Problem{"trace.unreadable", path, fmt::format("cannot be opened: {}", std::strerror(errno)),
                   "check the path and its permissions"};
  gzbuffer(file.get(), 1U << 18U);
  KernelTrace trace;
  trace.path = path;
  trace::ZlibStream stream(file.get());
  if (stream.Peek() == 'S') {
    return Problem{"trace.format", path, "is no Kineto trace: Nsight's exports tell neither groups nor sizes",
                   "record with torch.profiler, or take `cpfit trace` for what this file tells"};
  }
  KernelHandler handler(trace);
  if (std::optional<Problem> problem = trace::parse_events(path, stream, handler)) return std::move(*problem);
  handler.finish();
  if (!handler.found() || trace.devices.empty()) {
    return Problem{
        "trace.no_events", path,
        handler.found() ? "holds no work of a GPU (category \"kernel\")" : "is JSON, but no trace: it has no \"traceEvents\"",
        "name a Kineto / PyTorch profiler trace, recorded with activities=[CPU, CUDA]"};
  }
  return trace;
}

std::int64_t AxisExposure::total() const { return std::accumulate(exposed.begin(), exposed.end(), std::int64_t{0}); }

AxisExposure axis_exposure(const std::vector<TracedKernel>& kernels, std::int64_t from, std::int64_t to) {
  struct Border {
    std::int64_t at;
    std::uint32_t kernel;
    bool begins;
  };
  AxisExposure result;
  std::vector<Border> borders;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const TracedKernel& kernel = kernels[i];
    const std::int64_t start = std::max(kernel.start, from), end = std::min(kernel.end, to);
    if (start >= end || kernel.work == DeviceWork::kCopy) continue;
    borders.push_back({start, static_cast<std::uint32_t>(i), true});
    borders.push_back({end, static_cast<std::uint32_t>(i), false});
  }
  std::sort(borders.begin(), borders.end(), [&](const Border& a, const Border& b) {
    return std::tuple(a.at, a.begins, kernels[a.kernel].start, a.kernel) <
           std::tuple(b.at, b.begins, kernels[b.kernel].start, b.kernel);
  });
  std::int64_t computing = 0, since = 0;
  std::vector<std::uint32_t> messages;  // that run now, in the order they began; few
  for (const Border& border : borders) {
    const std::int64_t lasted = border.at - since;
    if (computing > 0) result.compute += lasted;
    if (!messages.empty()) result.communication += lasted;
    if (!messages.empty() && computing == 0) result.exposed[static_cast<std::size_t>(kernels[messages.front()].axis)] += lasted;
    since = border.at;
    if (kernels[border.kernel].work == DeviceWork::kCompute) {
      computing += border.begins ? 1 : -1;
    } else if (border.begins) {
      messages.push_back(border.kernel);
    } else {
      messages.erase(std::find(messages.begin(), messages.end(), border.kernel));
    }
  }
  return result;
}

}  // namespace cpfit
