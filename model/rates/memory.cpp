#include <algorithm>

#include "model/rates/curves.h"

namespace cpfit {

double memory_seconds(const MemoryCurve& curve, double hbm, double traffic, int kernels, double row, bool layer_norm) {
  double passes = 1.0;
  if (row > 0) {
    if (row > curve.looped_from) passes += curve.row_half / row;
    if (row > curve.kept_row) passes += curve.reread * (1 - curve.kept_row / row);
    if (layer_norm) passes += curve.statistics / row;
  }
  return curve.launch * kernels + traffic / (curve.hbm_share * hbm) * passes;
}

float relative_sigma(const FitQuality& quality) {
  return static_cast<float>(std::max(1.4826 * quality.median_error, quality.p90_error / 1.6449));  // both exact for a normal law
}

}  // namespace cpfit
