// A measurement from its plan to its file: every rank calls it alike; rank 0 reads and writes the file and speaks.
#pragma once

#include <functional>
#include <string>

#include "calibrate/probe/probe.h"
#include "kernels/core/transport.h"

namespace cpfit::probe {

enum class MeasureEnd : std::uint8_t { kDone, kInterrupted, kRefused, kProbeFailed };

/// `probes`: names of measuring_probes(); empty: all. The same end on every rank; kRefused: the file cannot be written or belongs
/// to another measurement (said on standard error); kProbeFailed: results of a probe were wrong, it was not timed, the others
/// were. Throws Error when the world fails; what was measured until then is in the file.
[[nodiscard]] MeasureEnd measure(const BenchOptions& options, const std::vector<std::string>& probes, kernels::Transport& host,
                                 ProgressLines& progress, const std::function<bool()>& interrupted);

}  // namespace cpfit::probe
