// What the host does for one attention operator over a context-parallel group that PyTorch launches operator by operator, as
// the authors of such kernels time it. In a training step this runs ahead of the GPU and hides; an operator of a millisecond or
// two takes as long as its launches, and one that is waited for after every call shows what is queued before its first kernel.
#pragma once

#include "model/rates/gpu_rates.h"
#include "model/record/measured_kernel.h"

namespace cpfit {

/// Seconds of the host.
struct EagerHost {
  double before = 0;  // until the first attention kernel is queued
  double whole = 0;   // all of the passes measured
  double idle = 0;    // of it, while the GPU has nothing queued because the host waited for it (MeasuredKernel::indexed_halves)
};

/// Operators cost `rates.launch_eager` each, point-to-point operations inside a group call of NCCL kPointToPoint.
[[nodiscard]] EagerHost eager_host(const MeasuredKernel& kernel, const GpuRates& rates);

}  // namespace cpfit
