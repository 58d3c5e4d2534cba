// The fit: published kernel and collective tables in, the tables of rates.toml out. One curve per GPU (or link class) and
// kind of kernel, each scored on shapes kept out. Groups with too few rows give no curve; the reason is listed.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "calibrate/read/kernel_table.h"
#include "model/cluster/gpu.h"
#include "model/rates/rate_tables.h"

namespace cpfit {

struct FitReport {
  RateTables tables;
  std::vector<std::string> left_out;  // "attention H200 fp8_tensor forward: 5 rows"
};

/// Fits every group of `tables`. GPUs that `gpus` does not know are left out.
[[nodiscard]] FitReport fit_rates(const std::vector<KernelTable>& tables, std::span<const Gpu> gpus);

/// The published tables that the shipped rates are fitted on, by file name.
[[nodiscard]] std::vector<std::string> fitted_files();

/// Reads `fitted_files()` below `folder`; throws Error where one is missing or malformed.
[[nodiscard]] std::vector<KernelTable> read_fitted_tables(const std::string& folder);

// One group each; the rows must belong to one GPU (or link class) and kind.
[[nodiscard]] GemmCurve fit_gemm(const std::vector<const KernelMeasurement*>& rows, const DevicePeaks& device, MathKind math);
/// Forward and backward together, so that figures of both passes in one help to separate them. A curve without rows of its
/// pass keeps rows = 0.
struct AttentionFit {
  AttentionCurve forward, backward;
};
[[nodiscard]] AttentionFit fit_attention(const std::vector<const KernelMeasurement*>& rows, const DevicePeaks& device,
                                         MathKind math);
/// One timing of a streaming kernel, and what its GPU is: bytes/s of its memory, multiprocessors.
struct MemorySample {
  const KernelMeasurement* row = nullptr;
  double hbm = 0, sm_count = 0;
};
/// One kernel and pass, on any number of GPUs; a curve for each of them.
[[nodiscard]] std::map<std::string, MemoryCurve> fit_memory(const std::vector<MemorySample>& samples);

/// A point of a collective curve: buffer bytes, seconds, and the raw rate of the link class it ran on.
struct CollectivePoint {
  double bytes = 0, seconds = 0, raw = 0;
  double spread = 0;  // relative, of repeated measurements
};
/// `largest_share` caps the rate of every piece as a share of raw.
[[nodiscard]] CollectiveCurve fit_collective(const std::vector<CollectivePoint>& points, CollectiveKind kind, std::int64_t ranks,
                                             double largest_share = 1e6);

[[nodiscard]] DevicePeaks peaks_of(const Gpu& gpu);

/// What cpfit predicts for one measurement; nothing for a kernel without a surface.
[[nodiscard]] std::optional<Rated> predict_kernel(const RateSet& rates, std::span<const Gpu> gpus,
                                                  const KernelMeasurement& measured);

}  // namespace cpfit
