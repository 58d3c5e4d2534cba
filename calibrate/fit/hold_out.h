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

/// With 100 shapes or more three tenths of them are kept out once; with fewer, each fifth in turn, however often each of them was
/// measured: of twenty sizes, six say nothing certain of a median.
/// Fills rows, held_out, median_error and p90_error.
void score_by_hold_out(const std::vector<std::string>& shapes, const FitAndPredict& fit_and_predict, FitQuality& quality);

/// The q-quantile of absolute relative errors from logarithmic ones.
[[nodiscard]] double error_quantile(std::vector<double> log_errors, double q);

[[nodiscard]] std::vector<std::size_t> all_rows(std::size_t count);

struct KernelMeasurement;
/// Weights of a table's rows for fit_robustly, from what each measurement scattered by.
[[nodiscard]] std::vector<double> scales_of(const std::vector<const KernelMeasurement*>& rows);

/// What no curve can be better than, relative. Where rows tell what they scattered by, the median of that. Else from shapes
/// measured more than once: by how much a measurement differs from the median of the others of the same shape, median over all
/// such; 0 where there are fewer than four. `shapes`: one text a row.
[[nodiscard]] double noise_of(const std::vector<double>& spreads, const std::vector<std::string>& shapes,
                              const std::vector<double>& seconds);
[[nodiscard]] double noise_of(const std::vector<const KernelMeasurement*>& rows, const std::vector<std::string>& shapes);

}  // namespace cpfit
