// One measured kernel, collective or attention operator as the rates predict it. Private to sim/evaluate.
#pragma once

#include <variant>

#include "model/record/measured_kernel.h"
#include "sim/evaluate/predict_run.h"

namespace cpfit {

/// Seconds with their interval. The work the row means must not exceed the device: "exceeds peak" otherwise.
[[nodiscard]] std::variant<Predicted, Unpredictable> predict(const MeasuredKernel& kernel, Predictor& predictor);

}  // namespace cpfit
