// From what kernels/verify judged to the record that is printed and stored.
#pragma once

#include <string>
#include <vector>

#include "kernels/verify/block_run.h"
#include "kernels/verify/controls.h"
#include "kernels/verify/suite_run.h"
#include "model/record/verification.h"

namespace cpfit::cli {

[[nodiscard]] VerifiedCase to_record(const kernels::CaseReport& report);
[[nodiscard]] VerifiedBlock to_record(const kernels::BlockReport& report);
[[nodiscard]] VerifiedControl to_record(const kernels::ControlReport& report);
[[nodiscard]] std::array<TensorError, kVerifiedTensors> to_record(
    const std::array<kernels::JudgedTensor, kernels::kTensorCount>& tensors);

}  // namespace cpfit::cli
