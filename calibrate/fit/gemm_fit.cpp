#include <algorithm>
#include <cmath>

#include "calibrate/fit/fit_rates.h"
#include "calibrate/fit/hold_out.h"
#include "calibrate/fit/robust.h"

namespace cpfit {

namespace {

enum Parameter : std::size_t { kLaunch, kShare, kDepth, kRounding, kSmallTile, kLoss, kSustained };

// Units of the fit: microseconds and milliseconds, so that parameters are of similar size.
const std::vector<FitParameter> kParameters = {
    {"launch_us", 3.0, 0.0, 30.0, 0},    {"peak_share", 0.85, 0.2, 1.2, 0},        {"k_half", 100.0, 0.0, 3000.0, 0},
    {"wave_rounding", 0.2, 0.0, 1.0, 0}, {"small_tile_share", 0.9, 0.4, 1.0, 0.1}, {"sustained_loss", 0.1, 0.0, 1.0, 0},
    {"sustained_ms", 0.5, 0.1, 20.0, 0},
};

/// Beside so few rows that a parameter may be left to chance: how far each may move from its start.
constexpr std::size_t kManyRows = 60;
std::vector<FitParameter> parameters_for(std::size_t rows) {
  std::vector<FitParameter> parameters = kParameters;
  if (rows >= kManyRows) return parameters;
  constexpr double kSpread[] = {6.0, 0.3, 200.0, 0.3, 0.1, 0.1, 5.0};
  for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i].prior = kSpread[i];
  return parameters;
}

GemmCurve curve_of(const std::vector<double>& p) {
  GemmCurve curve;
  curve.launch = p[kLaunch] * 1e-6;
  curve.peak_share = p[kShare];
  curve.k_half = p[kDepth];
  curve.wave_rounding = p[kRounding];
  curve.small_tile_share = p[kSmallTile];
  curve.sustained_loss = p[kLoss];
  curve.sustained = p[kSustained] * 1e-3;
  return curve;
}

}  // namespace

GemmCurve fit_gemm(const std::vector<const KernelMeasurement*>& rows, const DevicePeaks& device, MathKind math) {
  const double peak = device.math[static_cast<std::size_t>(math)];
  std::vector<std::string> shapes;
  FittedRange m{1e18, 0}, n{1e18, 0}, k{1e18, 0};
  const auto widen = [](FittedRange& range, std::int64_t value) {
    range.low = std::min(range.low, static_cast<double>(value));
    range.high = std::max(range.high, static_cast<double>(value));
  };
  for (const KernelMeasurement* row : rows) {
    const GemmShape& shape = std::get<GemmMeasurement>(row->what).shape;
    shapes.push_back(std::to_string(shape.m) + "," + std::to_string(shape.n) + "," + std::to_string(shape.k));
    widen(m, shape.m);
    widen(n, shape.n);
    widen(k, shape.k);
  }
  const LogError error = [&](const std::vector<double>& p, std::size_t row) {
    const GemmShape& shape = std::get<GemmMeasurement>(rows[row]->what).shape;
    return std::log(gemm_seconds(curve_of(p), device, peak, bytes_per_input(math), shape) / rows[row]->time.value());
  };
  const std::vector<FitParameter> parameters = parameters_for(rows.size());
  const std::vector<double> scales = scales_of(rows);
  const auto fit = [&](const std::vector<std::size_t>& fitted) {
    return fit_from_starts(parameters, kRounding, {0.2, 0.8}, fitted, error, scales).parameters;
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
  GemmCurve curve = curve_of(fit(all_rows(rows.size())));
  curve.m = m;
  curve.n = n;
  curve.k = k;
  curve.quality = quality;
  curve.quality.noise = noise_of(rows, shapes);
  return curve;
}

}  // namespace cpfit
