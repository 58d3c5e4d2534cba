#include <algorithm>

#include "model/rates/curves.h"

namespace cpfit {

double memory_seconds(const MemoryCurve& curve, double hbm, double traffic, int kernels, double row) {
  const double lanes = row > 0 ? 1.0 + curve.row_half / row : 1.0;
  return curve.launch * kernels + traffic / (curve.hbm_share * hbm) * lanes;
}

float relative_sigma(const FitQuality& quality) {
  return static_cast<float>(std::max(1.4826 * quality.median_error, quality.p90_error / 1.6449));  // both exact for a normal law
}

}  // namespace cpfit
