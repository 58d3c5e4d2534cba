#include "kernels/verify/judge.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/core/require.h"
#include "kernels/verify/fixture.h"

namespace cpfit::kernels {

namespace {

/// Does a rounding to the inputs' type per ring step reach this tensor?
bool rounded_by_step(const Accumulation& accumulation, TensorName tensor) {
  switch (tensor) {
    case TensorName::kOut:
      return !accumulation.wide_out;
    case TensorName::kLse:
      return false;
    case TensorName::kDq:
      return !accumulation.wide_out || !accumulation.wide_dq;
    case TensorName::kDk:
    case TensorName::kDv:
      return !accumulation.wide_out || !accumulation.wide_dkv;
  }
  return false;
}

/// Rows that attend to nothing, and padding: out 0, lse -inf, gradients 0, exactly.
std::string empty_row_trouble(const Case& verified, const AttentionTensors& whole, const AttentionTensors& truth,
                              EmptyRows empty_rows) {
  for (int i = 0; i < kTensorCount; ++i) {
    const auto tensor = static_cast<TensorName>(i);
    if (empty_rows == EmptyRows::kGradients && (tensor == TensorName::kOut || tensor == TensorName::kLse)) continue;
    const std::vector<std::uint8_t> judged = judged_rows(verified, tensor, truth.lse);
    const std::vector<double>& values = tensor_of(whole, tensor);
    const auto row = static_cast<std::size_t>(row_elements(verified.heads, tensor));
    const double wanted = tensor == TensorName::kLse ? -std::numeric_limits<double>::infinity() : 0.0;
    for (std::size_t r = 0; r < judged.size(); ++r) {
      if (judged[r] != 0) continue;
      for (std::size_t j = r * row; j < (r + 1) * row; ++j) {
        if (values[j] == wanted) continue;
        const bool of_keys = tensor == TensorName::kDk || tensor == TensorName::kDv;
        const std::size_t rows_per_token =
            judged.size() / static_cast<std::size_t>(of_keys ? verified.key_tokens : verified.query_tokens);
        return std::string(name_of(tensor)) + " of stored token " + std::to_string(r / rows_per_token) +
               ", which attends to nothing, is " + std::to_string(values[j]) + " instead of " +
               (tensor == TensorName::kLse ? "-inf" : "0");
      }
    }
  }
  return {};
}

void judge_cut(const Cut& cut, const Mask& mask, Judgement& judgement) {
  std::vector<int> held(static_cast<std::size_t>(cut.tokens), 0);
  for (std::int32_t rank = 0; rank < cut.cp; ++rank) {
    for (const std::int32_t row : storage_rows(cut, mask, rank)) {
      if (row >= 0 && row < cut.tokens) ++held[static_cast<std::size_t>(row)];
    }
    const std::vector<std::uint8_t> real = real_tokens(cut, mask, rank);
    const auto count = static_cast<double>(std::ranges::count(real, 1));
    if (!real.empty()) judgement.occupancy = std::min(judgement.occupancy, count / static_cast<double>(real.size()));
  }
  judgement.covered = judgement.covered && std::ranges::all_of(held, [](int times) { return times == 1; });
}

}  // namespace

double unit_roundoff(Number number) {
  switch (number) {
    case Number::kFp64:
      return 0x1p-53;
    case Number::kFp32:
      return 0x1p-24;
    case Number::kBf16:
      return 0x1p-8;
    case Number::kFp16:
      return 0x1p-11;
    case Number::kInt32:
      break;
  }
  require(false, "whole numbers have no unit roundoff");
  return 0;
}

ErrorFigures limits_of(Number number, const Accumulation& accumulation, std::int32_t cp, TensorName tensor,
                       const ErrorFigures& kernel) {
  if (number == Number::kFp64) return {kFp64Tolerance, kFp64Tolerance};
  if (number == Number::kFp32) return {kFp32Tolerance, kFp32Tolerance};
  double absolute = tensor == TensorName::kLse ? kFp32Tolerance : kAbsoluteShare * unit_roundoff(number);
  if (rounded_by_step(accumulation, tensor)) absolute += cp * unit_roundoff(number);
  return {kKernelMultiple * kernel.normwise + absolute, kKernelMultiple * kernel.largest + absolute};
}

bool Judgement::passed() const {
  return covered && trouble.empty() && std::ranges::all_of(tensors, [](const JudgedTensor& tensor) { return tensor.passed(); });
}

TensorName Judgement::worst() const {
  const auto excess = [&](int i) {
    const JudgedTensor& tensor = tensors[static_cast<std::size_t>(i)];
    if (!tensor.judged) return -1.0;
    return std::max(tensor.error.normwise / tensor.limit.normwise, tensor.error.largest / tensor.limit.largest);
  };
  int worst = 0;
  for (int i = 1; i < kTensorCount; ++i) {
    if (excess(i) > excess(worst)) worst = i;
  }
  return static_cast<TensorName>(worst);
}

Judgement judge(const Case& verified, const Accumulation& accumulation, const AttentionTensors& whole,
                const AttentionTensors& truth, const std::array<ErrorFigures, kTensorCount>& kernel, EmptyRows empty_rows) {
  Judgement judgement;
  for (int i = 0; i < kTensorCount; ++i) {
    const auto tensor = static_cast<TensorName>(i);
    JudgedTensor& judged = judgement.tensors[static_cast<std::size_t>(i)];
    judged.error = errors_of(tensor_of(whole, tensor), tensor_of(truth, tensor), row_elements(verified.heads, tensor),
                             judged_rows(verified, tensor, truth.lse));
    judged.kernel = kernel[static_cast<std::size_t>(i)];
    judged.limit = limits_of(verified.number, accumulation, verified.cp, tensor, judged.kernel);
  }
  judgement.trouble = empty_row_trouble(verified, whole, truth, empty_rows);
  const Layer layer = layer_of(verified);
  judge_cut(layer.queries, layer.mask, judgement);
  judge_cut(layer.keys, layer.mask, judgement);
  return judgement;
}

bool padding_changes_nothing(const Case& case_a, const AttentionTensors& a, const AttentionTensors& truth_a, const Case& case_b,
                             const AttentionTensors& b, const AttentionTensors& truth_b) {
  const auto real_rows = [](const Case& verified, const AttentionTensors& tensors, const AttentionTensors& truth,
                            TensorName tensor) {
    const std::vector<std::uint8_t> judged = judged_rows(verified, tensor, truth.lse);
    const std::int64_t row = row_elements(verified.heads, tensor);
    std::vector<double> real;
    for (std::size_t r = 0; r < judged.size(); ++r) {
      const auto begin = tensor_of(tensors, tensor).begin() + static_cast<std::int64_t>(r) * row;
      if (judged[r] != 0) real.insert(real.end(), begin, begin + row);
    }
    return real;
  };
  for (int i = 0; i < kTensorCount; ++i) {
    const auto tensor = static_cast<TensorName>(i);
    const std::vector<double> rows_a = real_rows(case_a, a, truth_a, tensor), rows_b = real_rows(case_b, b, truth_b, tensor);
    const std::int64_t row = row_elements(case_a.heads, tensor);
    const ErrorFigures difference =
        errors_of(rows_b, rows_a, row, std::vector<std::uint8_t>(rows_a.size() / static_cast<std::size_t>(row), 1));
    if (difference.normwise > kFp64Tolerance || difference.largest > kFp64Tolerance) return false;
  }
  return true;
}

}  // namespace cpfit::kernels
