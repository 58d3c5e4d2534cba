// The judgement of one case: every tensor's error against the truth, beside the tolerance and beside the error of the unsharded
// kernel in the same number type; what rows without anything to attend must hold; whether the cut holds each token once. Source
// of the tolerances: cp_model.md E.6.
//   fp64  1e-12
//   fp32  1e-5
//   bf16, fp16: 2.5 x the unsharded kernel's own error + an absolute term (kAbsoluteShare of the type's unit roundoff; lse, kept
//         in fp32, the tolerance of fp32); where a method keeps its sums in the inputs' own type, cp roundings more:
//         (2.5 + cp * u / kernel error) times it, u = 2^-8 for bf16, 2^-11 for fp16
#pragma once

#include <array>
#include <string>

#include "kernels/verify/truth_of_case.h"

namespace cpfit::kernels {

inline constexpr double kFp64Tolerance = 1e-12;
inline constexpr double kFp32Tolerance = 1e-5;
inline constexpr double kKernelMultiple = 2.5;
inline constexpr double kAbsoluteShare = 1.0 / 16.0;

/// Unit roundoff: half the distance of 1 and the next larger number.
[[nodiscard]] double unit_roundoff(Number number);

/// What an error may be. `accumulation`: of the method; a narrow out also moves delta and with it all gradients.
[[nodiscard]] ErrorFigures limits_of(Number number, const Accumulation& accumulation, std::int32_t cp, TensorName tensor,
                                     const ErrorFigures& kernel);

struct JudgedTensor {
  ErrorFigures error, kernel, limit;
  bool judged = true;  // false: the implementation gives none
  [[nodiscard]] bool passed() const { return !judged || (error.normwise <= limit.normwise && error.largest <= limit.largest); }
};

struct Judgement {
  std::array<JudgedTensor, kTensorCount> tensors;
  bool covered = true;   // every stored token is on one rank, once
  double occupancy = 1;  // real tokens per stored token of the rank that has the fewest
  std::string trouble;   // beyond the errors: a sentence; empty when nothing is wrong
  [[nodiscard]] bool passed() const;
  /// The judged tensor whose error is the largest multiple of its limit.
  [[nodiscard]] TensorName worst() const;
};

/// Which tensors must hold 0 (lse: -inf) in padding and in rows that attend to nothing: all of ours; of another implementation
/// the gradients, which go on into those of the weights, while its out and lse there are nobody's.
enum class EmptyRows : std::uint8_t { kAll, kGradients };

/// `whole`: results in storage order. `kernel`: errors of the unsharded kernel.
[[nodiscard]] Judgement judge(const Case& verified, const Accumulation& accumulation, const AttentionTensors& whole,
                              const AttentionTensors& truth, const std::array<ErrorFigures, kTensorCount>& kernel,
                              EmptyRows empty_rows = EmptyRows::kAll);

/// Of two fp64 runs of one sequence that are padded differently: no real number differs by more than the tolerance, by the norms
/// of errors_of. The truths, each in its case's storage order, tell which rows are real.
[[nodiscard]] bool padding_changes_nothing(const Case& case_a, const AttentionTensors& a, const AttentionTensors& truth_a,
                                           const Case& case_b, const AttentionTensors& b, const AttentionTensors& truth_b);

}  // namespace cpfit::kernels
