// What a trace of a real job measured of the machine, as points that `cpfit calibrate fit` takes beside those of cpfit-bench:
// kernels with their sizes, and collectives. A step time never becomes a point: it says that a prediction is off, not which rate
// is.
//
//   gemm        aten::mm and aten::addmm in bf16 or fp16 with recorded shapes (record_shapes=True): all kernels of one call
//   together attention   PyTorch's scaled_dot_product attention (FlashAttention 2 and cuDNN), forward and backward, with recorded
//   shapes
//               and arguments; batch counts as more heads
//   collective  all_reduce, all_gather, reduce_scatter and all_to_all with recorded sizes. A kernel's time includes waiting for
//   its
//               peers: with traces of several ranks the shortest of one call's kernels, which is that of the rank that came last,
//               counts; with one trace the fastest of at least kFewestRepeats calls of one size, and the point says so
// Left out, with their number: calls any of whose kernels ran beside another kernel of the GPU, operators of other libraries
// (they record no shapes), sums in fp32 (TF32 or not is not said). Rates of a job at its power limit are what training sees;
// cpfit's [[training]] factors then count twice (docs/ingest.md).
#pragma once

#include <string>
#include <vector>

#include "calibrate/read/trace_kernels.h"
#include "model/record/measurement.h"

namespace cpfit {

inline constexpr std::size_t kFewestRepeats = 5;

struct TracePoints {
  MeasurementFile file;
  std::vector<std::string> left_out;  // "12 calls of aten::mm: beside another kernel"
};

/// `traces` are of ranks of one job, one device each or several. Problem "ingest.no_points": nothing of use, with what was left
/// out.
[[nodiscard]] Outcome<TracePoints> points_of(const std::vector<KernelTrace>& traces, const std::string& tool_version);

}  // namespace cpfit
