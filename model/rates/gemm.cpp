#include <algorithm>

#include "model/rates/curves.h"

namespace cpfit {

namespace {

constexpr double kStreamShare = 0.85;  // of HBM, what a kernel that only streams reaches (norms: 0.75 to 0.8; larger blocks here)

/// Waves after rounding: between the work itself and whole waves.
double rounded(double waves, double rounding) { return waves + rounding * (ceiling(waves) - waves); }

}  // namespace

double gemm_seconds(const GemmCurve& curve, const DevicePeaks& device, double peak, double bytes_per_input,
                    const GemmShape& shape, double warm) {
  if (shape.m <= 0 || shape.n <= 0 || shape.k <= 0) return 0.0;
  // The tiles that libraries choose among; the fastest candidate is taken, as their heuristics try to.
  const std::int64_t m128 = (shape.m + 127) / 128, m192 = (shape.m + 191) / 192, m256 = (shape.m + 255) / 256;
  const std::int64_t n128 = (shape.n + 127) / 128, n192 = (shape.n + 191) / 192, n256 = (shape.n + 255) / 256;
  const double each = 1.0 / device.sm_count;
  const auto work = [&](std::int64_t tiles, double outputs) {
    return rounded(static_cast<double>(tiles) * each, curve.wave_rounding) * outputs;
  };
  const double large = std::min({work(m128 * n256, 128 * 256), work(m256 * n128, 256 * 128), work(m256 * n256, 256 * 256)});
  const double middle = std::min(work(m128 * n192, 128 * 192), work(m192 * n128, 192 * 128));
  const double small = work(m128 * n128, 128 * 128);  // less reuse per byte read from shared memory
  const double least = std::min({large, middle * 2 / (1 + curve.small_tile_share), small / curve.small_tile_share});

  const double m = static_cast<double>(shape.m), n = static_cast<double>(shape.n), k = static_cast<double>(shape.k);
  const double busy = least * device.sm_count * 2.0 * (k + curve.k_half) / (curve.peak_share * peak);
  const double moved = ((m * k + k * n) * bytes_per_input + 2.0 * m * n) / (kStreamShare * device.hbm);
  return curve.launch + std::max(moved, busy * sustained_factor(curve.sustained_loss, curve.sustained, busy, warm));
}

}  // namespace cpfit
