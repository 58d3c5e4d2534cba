#include "calibrate/fit/robust.h"

#include <algorithm>
#include <cmath>
#include <memory>

// Ceres' headers are not clean under our warnings; ours start below.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wpedantic"
#include <ceres/ceres.h>
#pragma GCC diagnostic pop

namespace cpfit {

namespace {

/// Spreads the free parameters over all of them.
struct Layout {
  std::vector<double> all;
  std::vector<std::size_t> free;
  [[nodiscard]] std::vector<double> expand(const double* values) const {
    std::vector<double> full = all;
    for (std::size_t i = 0; i < free.size(); ++i) full[free[i]] = values[i];
    return full;
  }
};

struct RowResidual {
  const LogError* error;
  const Layout* layout;
  std::size_t row;
  double scale;
  bool operator()(double const* const* values, double* residual) const {
    residual[0] = (*error)(layout->expand(values[0]), row) / scale;
    return true;
  }
};

struct PriorResidual {
  std::size_t index;
  double centre, sigma;
  bool operator()(double const* const* values, double* residual) const {
    residual[0] = (values[0][index] - centre) / sigma;
    return true;
  }
};

template <class Functor>
ceres::CostFunction* numeric_cost(Functor functor, int size) {
  auto* cost = new ceres::DynamicNumericDiffCostFunction<Functor, ceres::CENTRAL>(new Functor(functor));  // Ceres owns both
  cost->AddParameterBlock(size);
  cost->SetNumResiduals(1);
  return cost;
}

}  // namespace

double row_scale(double spread) { return std::hypot(kErrorScale, spread); }

FitResult fit_robustly(const std::vector<FitParameter>& parameters, const std::vector<std::size_t>& rows, const LogError& error,
                       const std::vector<double>& scales) {
  Layout layout;
  std::vector<double> values;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    layout.all.push_back(parameters[i].start);
    if (parameters[i].low < parameters[i].high) {
      layout.free.push_back(i);
      values.push_back(parameters[i].start);
    }
  }
  FitResult result;
  result.parameters = layout.all;
  if (values.empty() || rows.empty()) return result;

  ceres::Problem problem;
  const int size = static_cast<int>(values.size());
  for (const std::size_t row : rows) {
    problem.AddResidualBlock(numeric_cost(RowResidual{&error, &layout, row, scales.empty() ? kErrorScale : scales[row]}, size),
                             new ceres::SoftLOneLoss(1.0), values.data());
  }
  for (std::size_t i = 0; i < layout.free.size(); ++i) {
    const FitParameter& parameter = parameters[layout.free[i]];
    if (parameter.prior > 0) {
      problem.AddResidualBlock(numeric_cost(PriorResidual{i, parameter.start, parameter.prior}, size), nullptr, values.data());
    }
    problem.SetParameterLowerBound(values.data(), static_cast<int>(i), parameter.low);
    problem.SetParameterUpperBound(values.data(), static_cast<int>(i), parameter.high);
  }
  ceres::Solver::Options options;
  options.linear_solver_type = ceres::DENSE_QR;
  options.max_num_iterations = 200;
  options.num_threads = 1;
  options.logging_type = ceres::SILENT;
  options.function_tolerance = 1e-9;
  ceres::Solver::Summary summary;
  ceres::Solve(options, &problem, &summary);
  result.parameters = layout.expand(values.data());
  result.cost = summary.final_cost;
  result.converged = summary.IsSolutionUsable();
  return result;
}

FitResult fit_from_starts(std::vector<FitParameter> parameters, std::size_t varied, const std::vector<double>& starts,
                          const std::vector<std::size_t>& rows, const LogError& error, const std::vector<double>& scales) {
  FitResult best;
  bool first = true;
  for (const double start : starts) {
    parameters[varied].start = start;
    FitResult result = fit_robustly(parameters, rows, error, scales);
    if (first || result.cost < best.cost) best = std::move(result);
    first = false;
  }
  return best;
}

}  // namespace cpfit
