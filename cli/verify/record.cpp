#include "cli/verify/record.h"

#include "kernels/verify/suite.h"

namespace cpfit::cli {

std::array<TensorError, kVerifiedTensors> to_record(const std::array<kernels::JudgedTensor, kernels::kTensorCount>& tensors) {
  static_assert(kVerifiedTensors == kernels::kTensorCount);
  std::array<TensorError, kVerifiedTensors> errors;
  for (std::size_t i = 0; i < errors.size(); ++i) {
    const kernels::JudgedTensor& tensor = tensors[i];
    errors[i] = {tensor.error.normwise, tensor.error.largest, tensor.kernel.normwise, tensor.kernel.largest,
                 tensor.limit.normwise, tensor.limit.largest, tensor.judged};
  }
  return errors;
}

VerifiedCase to_record(const kernels::CaseReport& report) {
  const kernels::Case& verified = report.verified;
  VerifiedCase record;
  record.method = verified.method;
  record.mask = kernels::name_of(verified.mask);
  record.shape = verified.shape;
  record.layout = layout_text(verified);
  record.dtype = name_of(verified.number);
  record.cp = verified.cp;
  record.inner = verified.inner;
  record.length = verified.query_tokens;
  record.passed = report.passed();
  record.errors = to_record(report.judgement.tensors);
  record.pad_checked = report.pad_checked;
  record.pad_invariant = report.pad_invariant;
  record.covered = report.judgement.covered;
  record.occupancy = report.judgement.occupancy;
  record.trouble = report.judgement.trouble;
  return record;
}

VerifiedBlock to_record(const kernels::BlockReport& report) {
  VerifiedBlock record;
  record.method = report.verified.method;
  record.shape = report.verified.shape;
  record.cp = report.verified.cp;
  record.passed = report.passed();
  record.loss_truth = report.loss_truth;
  record.loss = report.loss;
  if (!report.errors.empty()) {
    record.parameter = report.worst().name;
    record.error = report.worst().error.normwise;
  }
  record.limit = report.tolerance;
  record.trouble = report.trouble;
  return record;
}

VerifiedControl to_record(const kernels::ControlReport& report) {
  VerifiedControl record;
  record.name = name_of(report.fault);
  record.meaning = meaning_of(report.fault);
  record.planted_in = report.planted_in.name;
  record.caught = report.caught;
  record.tensor = report.place;
  record.error = report.error;
  record.limit = report.limit;
  record.loss_truth = report.block.loss_truth;
  record.loss_faulty = report.block.loss;
  if (!report.block.errors.empty()) {
    record.gradient = report.block.worst().name;
    record.gradient_error = report.block.worst().error.normwise;
  }
  record.loss_looks_alike = report.loss_looks_alike();
  record.trouble = report.trouble;
  return record;
}

}  // namespace cpfit::cli
