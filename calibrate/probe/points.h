// How each probe measures one point: all ranks of a job together, results on rank 0. What it computes or moves is compared with
// the truth at a small size before anything is timed.
#pragma once

#include <functional>
#include <string>

#include "calibrate/probe/bench_device.h"
#include "calibrate/probe/series.h"
#include "calibrate/probe/together.h"
#include "model/record/measurement.h"

namespace cpfit::probe {

struct PointContext {
  Together& together;
  BenchDevice& device;
  StoppingRule rule;
  std::uint64_t seed = 1;
  std::function<bool()> interrupted;
};

/// Measures `point`, whose axes are set, and fills in the rest (on rank 0). A point that cannot be measured here comes back
/// skipped or failed with the reason. Throws Interrupted on every rank, and Error when the world fails.
void measure_point(const PointContext& context, MeasuredPoint& point);

/// The probe's small case against the truth: empty, or what was wrong, the same on every rank. `point`: whose kernel, method,
/// mask and layout are checked.
[[nodiscard]] std::string check_probe(const PointContext& context, const MeasuredPoint& point);
/// Points with the same key share a check.
[[nodiscard]] std::string check_key(const MeasuredPoint& point);

// One function per probe, by file: points_compute.cpp, points_messages.cpp, points_ring.cpp.
void measure_attention(const PointContext& context, MeasuredPoint& point);
void measure_gemm(const PointContext& context, MeasuredPoint& point);
void measure_memory(const PointContext& context, MeasuredPoint& point);
void measure_launch(const PointContext& context, MeasuredPoint& point);
void measure_p2p(const PointContext& context, MeasuredPoint& point);
void measure_collective(const PointContext& context, MeasuredPoint& point);
void measure_overlap(const PointContext& context, MeasuredPoint& point);
void measure_shared_nic(const PointContext& context, MeasuredPoint& point);
void measure_ring_step(const PointContext& context, MeasuredPoint& point);

[[nodiscard]] std::string check_attention(const PointContext& context, const std::string& kernel);
[[nodiscard]] std::string check_gemm(const PointContext& context);
[[nodiscard]] std::string check_memory(const PointContext& context);
[[nodiscard]] std::string check_messages(const PointContext& context);
[[nodiscard]] std::string check_ring(const PointContext& context, const MeasuredPoint& point);

/// Series -> point.
void take(const PointContext& context, const SeriesRequest& request, MeasuredPoint& point);
/// |a - b| / |b|, Euclidean; infinite when a number is none.
[[nodiscard]] double relative_error(const std::vector<double>& a, const std::vector<double>& b);
/// What a result in the device's number type may differ by from one in fp64.
[[nodiscard]] double tolerance_of(kernels::Number number);

/// A tensor of uniform numbers in [-1, 1).
[[nodiscard]] kernels::Array random_array(kernels::Operators& operators, kernels::Number number, std::int64_t rows,
                                          std::int64_t columns, std::uint64_t seed);

/// One block's tensors for forward and backward.
struct BlockTensors {
  kernels::Heads heads;
  kernels::BlockMask mask;
  kernels::Array q, k, v, dout, out, lse, delta, dq, dk, dv, range, position;
};
/// `causal`: bottom-right aligned. out, lse and delta are computed.
[[nodiscard]] BlockTensors make_block(kernels::Operators& operators, kernels::Number number, const kernels::Heads& heads,
                                      std::int64_t queries, std::int64_t keys, bool causal, std::uint64_t seed);
void run_block(kernels::Operators& operators, const BlockTensors& block, bool backward);
[[nodiscard]] kernels::Heads heads_at(const MeasuredPoint& point);

}  // namespace cpfit::probe
