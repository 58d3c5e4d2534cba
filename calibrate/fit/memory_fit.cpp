#include <algorithm>
#include <cmath>

#include "calibrate/fit/fit_rates.h"
#include "calibrate/fit/hold_out.h"
#include "calibrate/fit/robust.h"

namespace cpfit {

namespace {

const std::vector<FitParameter> kParameters = {
    {"launch_us", 3.0, 0.5, 40.0, 5.0}, {"hbm_share", 0.7, 0.05, 1.0, 0.3}, {"row_half", 30.0, 0.0, 2000.0, 100.0}};

MemoryCurve curve_of(const std::vector<double>& p) {
  MemoryCurve curve;
  curve.launch = p[0] * 1e-6;
  curve.hbm_share = p[1];
  curve.row_half = p[2];
  return curve;
}

}  // namespace

MemoryCurve fit_memory(const std::vector<const KernelMeasurement*>& rows, const std::vector<double>& hbm) {
  std::vector<std::string> shapes;
  FittedRange traffic{1e18, 0};
  for (const KernelMeasurement* row : rows) {
    const StreamMeasurement& stream = std::get<StreamMeasurement>(row->what);
    shapes.push_back(std::to_string(stream.traffic.value()) + "," + std::to_string(stream.row));
    traffic.low = std::min(traffic.low, stream.traffic.value());
    traffic.high = std::max(traffic.high, stream.traffic.value());
  }
  const LogError error = [&](const std::vector<double>& p, std::size_t row) {
    const StreamMeasurement& stream = std::get<StreamMeasurement>(rows[row]->what);
    const double seconds = memory_seconds(curve_of(p), hbm[row], stream.traffic.value(), 1, static_cast<double>(stream.row));
    return std::log(seconds / rows[row]->time.value());
  };
  const std::vector<double> scales = scales_of(rows);
  const auto fit = [&](const std::vector<std::size_t>& fitted) {
    return fit_robustly(kParameters, fitted, error, scales).parameters;
  };
  FitQuality quality;
  score_by_hold_out(
      shapes,
      [&](const std::vector<std::size_t>& fitted, const std::vector<std::size_t>& predicted) {
        const std::vector<double> p = fit(fitted);
        std::vector<double> errors;
        for (const std::size_t row : predicted) errors.push_back(error(p, row));
        return errors;
      },
      quality);
  MemoryCurve curve = curve_of(fit(all_rows(rows.size())));
  curve.traffic = traffic;
  curve.quality = quality;
  curve.quality.noise = noise_of(rows);
  return curve;
}

}  // namespace cpfit
