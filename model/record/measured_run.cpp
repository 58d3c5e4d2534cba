#include "model/record/measured_run.h"

#include <array>
#include <cmath>

namespace cpfit {

namespace {

constexpr std::array<std::string_view, kRunFigureCount> kFigures = {"step_seconds",       "tokens_per_second_per_gpu",
                                                                    "tflops_per_gpu",     "mfu",
                                                                    "resident_bytes",     "peak_bytes",
                                                                    "reserved_bytes",     "exposed_seconds",
                                                                    "exposed_cp_seconds", "exposed_tp_seconds",
                                                                    "exposed_pp_seconds", "exposed_dp_seconds"};
constexpr std::array<std::string_view, kStandingCount> kStandings = {"not predicted", "inside", "outside", "outlier"};

}  // namespace

std::string_view name_of(RunFigure figure) { return kFigures.at(static_cast<std::size_t>(figure)); }
std::string_view name_of(Standing standing) { return kStandings.at(static_cast<std::size_t>(standing)); }

Standing standing_of(double measured, double predicted, double low, double high, bool by_difference, double step) {
  if (measured >= low && measured <= high) return Standing::kInside;
  if (by_difference) {
    const double off = std::abs(measured - predicted);
    const double reach = kOutlierReach * (measured > high ? high - predicted : predicted - low);
    return off > reach && off > kExposedFloor * step ? Standing::kOutlier : Standing::kOutside;
  }
  if (!(measured > 0) || !(predicted > 0) || !(low > 0)) return Standing::kOutlier;
  const double end = measured > high ? high : low;
  const bool far = std::abs(std::log(measured / predicted)) > kOutlierReach * std::abs(std::log(end / predicted));
  return far ? Standing::kOutlier : Standing::kOutside;
}

}  // namespace cpfit
