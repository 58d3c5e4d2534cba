#include <algorithm>
#include <cmath>

#include "model/rates/curves.h"

namespace cpfit {

namespace {

constexpr double kColumnsPerBlock = 32;  // a warp across: one column a thread

double whole(double value, double unit) { return unit > 0 ? unit * ceiling(value / unit) : value; }

}  // namespace

double memory_seconds(const MemoryCurve& curve, double hbm, double traffic, int kernels) {
  return curve.launch * kernels + traffic / (curve.hbm_share * hbm);
}

double norm_seconds(const MemoryCurve& curve, const DevicePeaks& device, double traffic, const NormRows& work) {
  if (work.row <= 0 || work.rows <= 0) return memory_seconds(curve, device.hbm, traffic, 1);
  const bool looped = work.row > curve.looped_from;
  const double again = work.row > curve.kept_row ? curve.reread * (1 - curve.kept_row / work.row) : 0;
  const double memory = traffic / (curve.hbm_share * device.hbm) * (1 + again);

  const double a_row = (looped ? curve.row_time : 0) + (work.layer_norm ? curve.statistics : 0) +
                       curve.element_time * (looped ? whole(work.row, curve.tile) : work.row);
  const double wave = curve.resident * device.sm_count;
  const double rows = work.rows + curve.wave_rounding * (whole(work.rows, wave) - work.rows);
  const double processors = rows / device.sm_count * a_row;

  const double columns = ceiling(work.row / kColumnsPerBlock / device.sm_count);
  return curve.launch + std::cbrt(memory * memory * memory + processors * processors * processors) +
         columns * (curve.column_start + curve.column_row * work.rows);
}

float relative_sigma(const FitQuality& quality) {
  return static_cast<float>(std::max(1.4826 * quality.median_error, quality.p90_error / 1.6449));  // both exact for a normal law
}

}  // namespace cpfit
