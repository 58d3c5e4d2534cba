#include "calibrate/fit/hold_out.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "calibrate/fit/robust.h"
#include "calibrate/read/kernel_table.h"

namespace cpfit {

namespace {

constexpr std::size_t kManyShapes = 100;
constexpr std::size_t kFewestRepeats = 4;  // measurements of shapes that were measured again: fewer tell nothing of a table

}  // namespace

std::uint32_t shape_bucket(std::string_view shape) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a, then mixed: the last characters alone must not decide
  for (const char c : shape) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  hash ^= hash >> 33;
  hash *= 0xff51afd7ed558ccdULL;
  hash ^= hash >> 33;
  return static_cast<std::uint32_t>(hash % 10000);
}

std::vector<std::size_t> all_rows(std::size_t count) {
  std::vector<std::size_t> rows(count);
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  return rows;
}

double error_quantile(std::vector<double> log_errors, double q) {
  if (log_errors.empty()) return 0.0;
  for (double& error : log_errors) error = std::abs(std::expm1(error));
  std::sort(log_errors.begin(), log_errors.end());
  const double at = q * static_cast<double>(log_errors.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, log_errors.size() - 1);
  return log_errors[below] + (at - static_cast<double>(below)) * (log_errors[above] - log_errors[below]);
}

std::vector<double> scales_of(const std::vector<const KernelMeasurement*>& rows) {
  std::vector<double> scales;
  for (const KernelMeasurement* row : rows) scales.push_back(row_scale(row->spread));
  return scales;
}

namespace {

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

double noise_of(const std::vector<double>& spreads, const std::vector<std::string>& shapes, const std::vector<double>& seconds) {
  const double told = median_of(spreads);
  if (told > 0) return told;
  std::map<std::string, std::vector<std::size_t>> repeats;
  for (std::size_t row = 0; row < shapes.size(); ++row) repeats[shapes[row]].push_back(row);
  std::vector<double> differences;
  for (const auto& [shape, rows] : repeats) {
    for (const std::size_t row : rows) {
      std::vector<double> others;
      for (const std::size_t other : rows) {
        if (other != row) others.push_back(std::log(seconds[other]));
      }
      if (others.empty()) continue;
      std::sort(others.begin(), others.end());
      const double known = (others[(others.size() - 1) / 2] + others[others.size() / 2]) / 2;
      differences.push_back(std::abs(std::expm1(known - std::log(seconds[row]))));
    }
  }
  return differences.size() < kFewestRepeats ? 0 : median_of(differences);
}

double noise_of(const std::vector<const KernelMeasurement*>& rows, const std::vector<std::string>& shapes) {
  std::vector<double> spreads, seconds;
  for (const KernelMeasurement* row : rows) {
    spreads.push_back(row->spread);
    seconds.push_back(row->time.value());
  }
  return noise_of(spreads, shapes, seconds);
}

void score_by_hold_out(const std::vector<std::string>& shapes, const FitAndPredict& fit_and_predict, FitQuality& quality) {
  const bool many = std::set<std::string_view>(shapes.begin(), shapes.end()).size() >= kManyShapes;
  const std::uint32_t folds = many ? 1 : 5;
  std::vector<double> errors;
  for (std::uint32_t fold = 0; fold < folds; ++fold) {
    std::vector<std::size_t> fitted, kept_out;
    for (std::size_t row = 0; row < shapes.size(); ++row) {
      const std::uint32_t bucket = shape_bucket(shapes[row]);
      const bool out = many ? bucket < 3000 : bucket % 5 == fold;
      (out ? kept_out : fitted).push_back(row);
    }
    if (fitted.empty() || kept_out.empty()) continue;
    const std::vector<double> fold_errors = fit_and_predict(fitted, kept_out);
    errors.insert(errors.end(), fold_errors.begin(), fold_errors.end());
  }
  quality.rows = static_cast<std::int64_t>(shapes.size());
  quality.held_out = static_cast<std::int64_t>(errors.size());
  quality.median_error = error_quantile(errors, 0.5);
  quality.p90_error = error_quantile(errors, 0.9);
}

}  // namespace cpfit
