#include "calibrate/read/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "calibrate/read/trace_sources.h"

namespace cpfit {

namespace trace {

void Devices::add(std::string_view device, std::string_view stream, std::int64_t start, std::int64_t end, DeviceWork work) {
  const auto is = [&](const Stream& known) { return known.stream == stream && known.device == device; };
  if (last_ >= known_.size() || !is(known_[last_])) {
    const auto found = std::find_if(known_.begin(), known_.end(), is);
    last_ = static_cast<std::size_t>(found - known_.begin());
    if (found == known_.end()) {
      auto owner =
          std::find_if(trace_.devices.begin(), trace_.devices.end(), [&](const TracedDevice& d) { return d.name == device; });
      if (owner == trace_.devices.end()) {
        trace_.devices.push_back({std::string(device), 0, {}});
        owner = trace_.devices.end() - 1;
      }
      known_.push_back(
          {std::string(device), std::string(stream), static_cast<std::size_t>(owner - trace_.devices.begin()), owner->streams++});
    }
  }
  const Stream& at = known_[last_];
  trace_.devices[at.device_index].spans.push_back({start, std::max(start, end), at.stream_index, work});
}

}  // namespace trace

bool communicates(std::string_view kernel) {
  const auto begins = [&](std::string_view prefix) {
    return kernel.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), kernel.begin(), [](char a, char b) {
             return a == static_cast<char>(std::tolower(static_cast<unsigned char>(b)));
           });
  };
  return begins("nccl") || begins("rccl") || begins("mscclkernel") || begins("nvshmem") || begins("void nvshmem");
}

Outcome<RecordedTrace> read_trace(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char head[16] = {};
  if (!file || !(file.read(head, sizeof head) || file.gcount() > 0)) {
    const bool opened = file.is_open();
    return Problem{"trace.unreadable", path,
                   opened ? "is empty or no file" : fmt::format("cannot be read: {}", std::strerror(errno)),
                   "name a Kineto or Chrome trace (.json, .json.gz) or an Nsight Systems export (.sqlite)"};
  }
  file.close();
  const bool database = std::string_view(head, sizeof head).starts_with("SQLite format 3");
  Outcome<RecordedTrace> trace = database ? trace::read_nsys(path) : trace::read_json(path);
  if (!trace.ok()) return trace;
  std::sort(trace.value().devices.begin(), trace.value().devices.end(), [](const TracedDevice& a, const TracedDevice& b) {
    return a.name.size() != b.name.size() ? a.name.size() < b.name.size() : a.name < b.name;  // "2" before "10"
  });
  return trace;
}

}  // namespace cpfit
