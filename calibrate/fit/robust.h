// Robust least squares on logarithmic errors: a few named parameters with bounds and, where rows are few, a prior each.
// Minimises sum of soft-L1(log(predicted / measured) / scale) + sum of ((p - start) / prior)^2. Deterministic: one thread,
// written start values, no random restarts.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace cpfit {

struct FitParameter {
  std::string name;
  double start = 0, low = 0, high = 0;  // low == high holds it at `start`
  double prior = 0;                     // standard deviation around `start`; 0: none
};

/// log(predicted / measured) of row `row` under `parameters`, in the order given.
using LogError = std::function<double(const std::vector<double>& parameters, std::size_t row)>;

struct FitResult {
  std::vector<double> parameters;
  double cost = 0;
  bool converged = false;
};

/// Errors well above this count linearly, not squared: what a good curve misses by.
inline constexpr double kErrorScale = 0.03;

/// The scale of a row whose measurement has a relative standard deviation of its own: noisy rows weigh less.
[[nodiscard]] double row_scale(double spread);

/// `rows` selects the rows that count. `scales`: one per row of the whole table; empty: kErrorScale for all.
[[nodiscard]] FitResult fit_robustly(const std::vector<FitParameter>& parameters, const std::vector<std::size_t>& rows,
                                     const LogError& error, const std::vector<double>& scales = {});

/// The same from several starts of one parameter; the lowest cost wins, the first on ties.
[[nodiscard]] FitResult fit_from_starts(std::vector<FitParameter> parameters, std::size_t varied,
                                        const std::vector<double>& starts, const std::vector<std::size_t>& rows,
                                        const LogError& error, const std::vector<double>& scales = {});

}  // namespace cpfit
