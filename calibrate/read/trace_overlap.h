// Exposed communication of a recorded trace, by intervals: what of the time in which a GPU communicates is time in which it does
// not compute. Exact in picoseconds. Source: calibration_topology.md 8.4 (HolisticTraceAnalysis' classes).
#pragma once

#include <cstdint>
#include <string>

#include "calibrate/read/trace.h"

namespace cpfit {

/// Of one device. Intervals of several streams are united first, so work that runs twice at a time counts once.
/// exposed = |communication| - |communication and compute| = |communication or compute| - |compute|.
struct TraceOverlap {
  std::int64_t span = 0;     // first beginning to last end, of any work
  std::int64_t compute = 0;  // picoseconds, all
  std::int64_t communication = 0;
  std::int64_t copy = 0;
  std::int64_t overlapped = 0;  // of communication, beside compute
  std::int64_t exposed = 0;     // of communication, without compute
  std::int64_t idle = 0;        // of span, without any work
  std::int64_t communication_kernels = 0, works = 0;
};

[[nodiscard]] TraceOverlap overlap_of(const TracedDevice& device);

/// What a person should not conclude: a GPU that is busy nearly all the time although its communication is not hidden, or one
/// that waits. Empty when there is nothing to warn of.
[[nodiscard]] std::string overlap_remark(const TraceOverlap& overlap);

}  // namespace cpfit
