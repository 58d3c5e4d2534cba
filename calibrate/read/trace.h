// A recorded trace of a real run, reduced to what decides exposed communication: when each GPU computed, communicated, copied.
// Reads Kineto / PyTorch profiler JSON and other Chrome traces (plain or gzip), `nsys export --type sqlite`, and the traces that
// `cpfit simulate --trace` writes. Files are read as a stream: memory grows with the GPU's work items, not with the file.
// Formats: calibration_topology.md 8.2, 8.3.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/quantity/problem.h"

namespace cpfit {

enum class DeviceWork : std::uint8_t { kCompute, kCommunication, kCopy };

/// One kernel, copy or fill. Picoseconds since the first event of the file (before it: negative).
struct DeviceSpan {
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::int32_t stream = 0;  // index of the stream on its device
  DeviceWork work = DeviceWork::kCompute;
};

/// One GPU of the trace; simulated traces: one rank.
struct TracedDevice {
  std::string name;  // as the trace calls it: "0"
  std::int32_t streams = 0;
  std::vector<DeviceSpan> spans;          // in the order of the file
  std::optional<std::int64_t> rank = {};  // where the trace says it of the device itself (simulated ones)
};

/// A training step as the profiler marked it (torch.profiler.schedule: "ProfilerStep#551").
struct TracedStep {
  std::string name;
  std::int64_t start = 0, end = 0;  // as DeviceSpan's
  bool on_gpu = false;              // on the GPU's clock; else the host's, whose kernels come a little later
};

struct RecordedTrace {
  std::string path;
  std::string format;                // "Kineto", "Chrome", "Nsight Systems", "cpfit"
  std::optional<std::int64_t> rank;  // where the file says so
  std::int64_t events = 0;           // of any kind
  std::vector<TracedDevice> devices;
  std::vector<TracedStep> steps;  // ascending, one per name; the GPU's marks where there are any; empty without marks
  Problems remarks;               // what was left out, and what it may change
};

/// Whether a kernel of this name communicates: "nccl…" in any of its spellings (ncclKernel_, ncclDevKernel_), RCCL's included,
/// and NVSHMEM's. Names of libraries change; the prefix has not (HolisticTraceAnalysis#207).
[[nodiscard]] bool communicates(std::string_view kernel);

/// Reads a file by its contents. Problems: "trace.unreadable", "trace.syntax" (where), "trace.no_events" (JSON without
/// traceEvents, a trace without GPU work), "trace.table" (nsys export without kernels).
[[nodiscard]] Outcome<RecordedTrace> read_trace(const std::string& path);

}  // namespace cpfit
