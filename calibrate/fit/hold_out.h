// How well a form predicts shapes it has not seen. Rows are split by a hash of their shape, never row by row: repeats of one
// shape, or the same shape in another direction, must not sit on both sides.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "model/rates/curves.h"

namespace cpfit {

/// A stable number in [0, 10000) from a shape's text.
[[nodiscard]] std::uint32_t shape_bucket(std::string_view shape);

/// Fits on some rows, returns log(predicted / measured) of others.
using FitAndPredict =
    std::function<std::vector<double>(const std::vector<std::size_t>& fitted, const std::vector<std::size_t>& predicted)>;

/// With 100 rows or more three tenths of the shapes are kept out once; with fewer, each fifth of the shapes in turn.
/// Fills rows, held_out, median_error and p90_error.
void score_by_hold_out(const std::vector<std::string>& shapes, const FitAndPredict& fit_and_predict, FitQuality& quality);

/// The q-quantile of absolute relative errors from logarithmic ones.
[[nodiscard]] double error_quantile(std::vector<double> log_errors, double q);

[[nodiscard]] std::vector<std::size_t> all_rows(std::size_t count);

struct KernelMeasurement;
/// Weights of a table's rows for fit_robustly, from what each measurement scattered by; their median as the table's noise.
[[nodiscard]] std::vector<double> scales_of(const std::vector<const KernelMeasurement*>& rows);
[[nodiscard]] double noise_of(const std::vector<const KernelMeasurement*>& rows);

}  // namespace cpfit
