// The readers behind trace.h, one per format.
#pragma once

#include <string>

#include "calibrate/read/trace.h"

namespace cpfit::trace {

/// Kineto, Chrome, or our own JSON; plain or gzip.
[[nodiscard]] Outcome<RecordedTrace> read_json(const std::string& path);
/// `nsys export --type sqlite`.
[[nodiscard]] Outcome<RecordedTrace> read_nsys(const std::string& path);

/// Finds or adds a device by name, and the index of a stream on it.
class Devices {
 public:
  explicit Devices(RecordedTrace& trace) : trace_(trace) {}
  void add(std::string_view device, std::string_view stream, std::int64_t start, std::int64_t end, DeviceWork work);

 private:
  RecordedTrace& trace_;
  struct Stream {
    std::string device, stream;
    std::size_t device_index = 0;
    std::int32_t stream_index = 0;
  };
  std::vector<Stream> known_;  // few: a search from the last hit is faster than a map of strings
  std::size_t last_ = 0;
};

}  // namespace cpfit::trace
