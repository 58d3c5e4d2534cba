#include <algorithm>
#include <cmath>

#include "model/rates/curves.h"

namespace cpfit {

namespace {

struct Tile {
  std::int64_t m, n;
  bool small;  // fewer than 128 x 192 outputs: less reuse per byte read from shared memory
};

// What the libraries choose among; the fastest candidate is taken, as their heuristics try to.
constexpr Tile kTiles[] = {{128, 256, false}, {256, 128, false}, {128, 192, false},
                           {192, 128, false}, {256, 256, false}, {128, 128, true}};

constexpr double kStreamShare = 0.85;  // of HBM, what a kernel that only streams reaches (norms: 0.75 to 0.8; larger blocks here)

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

double gemm_seconds(const GemmCurve& curve, const DevicePeaks& device, double peak, double bytes_per_input,
                    const GemmShape& shape) {
  if (shape.m <= 0 || shape.n <= 0 || shape.k <= 0) return 0.0;
  double least = 0.0;  // waves x outputs per tile, scaled by the tile's speed
  for (const Tile& tile : kTiles) {
    const double waves = static_cast<double>(ceil_div(shape.m, tile.m) * ceil_div(shape.n, tile.n)) / device.sm_count;
    const double rounded = waves + curve.wave_rounding * (std::ceil(waves) - waves);
    const double middle = tile.m * tile.n < 128 * 256 && !tile.small ? 0.5 * (1 + curve.small_tile_share) : 1.0;
    const double work = rounded * static_cast<double>(tile.m * tile.n) / (tile.small ? curve.small_tile_share : middle);
    if (least == 0.0 || work < least) least = work;
  }
  const double busy = least * device.sm_count * 2.0 * (static_cast<double>(shape.k) + curve.k_half) / (curve.peak_share * peak);
  const double m = static_cast<double>(shape.m), n = static_cast<double>(shape.n), k = static_cast<double>(shape.k);
  const double moved = ((m * k + k * n) * bytes_per_input + 2.0 * m * n) / (kStreamShare * device.hbm);
  return curve.launch + std::max(moved, busy * (1.0 + curve.sustained_loss * busy / (busy + curve.sustained)));
}

}  // namespace cpfit
