// A measured ring attention step (one layer, one pass, as cpfit-bench runs it) predicted from the rates of its parts: kernels by
// the attention surface, messages by the link's size curve, sums and copies by the memory-bound ones, and what both cost each
// other. The implementation that is measured is described by policies, as every framework is: which way the ring turns, when
// partial results are summed, how many messages a hop has; and how messages move. On a host they move only inside MPI's calls,
// which a rank makes between tiles of attention and while it waits: a message beside a kernel advances at 1/message_slowdown of
// its speed and the kernel at 1/slowdown of its own, both fitted to the overlap probe. A GPU's messages move by themselves; the
// same two figures then say what they take of each other's memory bandwidth and multiprocessors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/cluster/gpu.h"
#include "model/quantity/problem.h"
#include "model/rates/gpu_rates.h"
#include "model/rates/rate_tables.h"
#include "model/record/measurement.h"

namespace cpfit {

/// The rates that a ring on one device over one link needs. Rows of the defaults never enter: a missing one is a problem.
struct RingRates {
  GpuRates kernels;
  AttentionLibrary library = AttentionLibrary::kOwn;
  MathKind math = MathKind::kFp32;
  CollectiveCurve message;  // both ways at once
  double link_rate = 0;     // bytes/s that the shares of `message` refer to
  double slowdown = 1, message_slowdown = 1;
  std::optional<MemoryCurve> copy, sum, merge;  // bytes read and written over time, each with its own start-up
  double memory_rate = 0;                       // bytes/s that the shares of these refer to
};

/// Problems "ring.rates": which row is missing ("attention forward of host X in fp32", "messages over tcp").
[[nodiscard]] Outcome<RingRates> ring_rates(const RateTables& tables, const std::string& device, const std::string& link);

struct RingStepPrediction {
  double seconds = 0, exposed_seconds = 0, compute_seconds = 0;  // of the rank that is ready last
  double relative_sigma = 0;                                     // of `seconds`
  bool in_range = true;
};

/// `point`: a ring_step of cpfit-bench with its axes. Problem "ring.method" for a method that is not predicted.
[[nodiscard]] Outcome<RingStepPrediction> predict_ring_step(const RingRates& rates, const MeasuredPoint& point);

/// What a step launches and sends, of all ranks: a fit that must not have seen the step leaves these shapes and sizes out. Empty
/// for a method that is not predicted.
struct RingWork {
  std::vector<AttentionShape> kernels;
  std::vector<double> message_bytes;
};
[[nodiscard]] RingWork ring_work(const MeasuredPoint& point);

/// One rank beside one message: both start at `begin`, unless one of them is ready later. Pure, for tests.
struct Beside {
  double kernel_end = 0, message_end = 0;
};
/// A kernel of `work` seconds from `kernel_begin`, a message of `message` seconds from `message_begin` (not earlier).
[[nodiscard]] Beside run_beside(double kernel_begin, double work, double message_begin, double message, double slowdown,
                                double message_slowdown);

}  // namespace cpfit
