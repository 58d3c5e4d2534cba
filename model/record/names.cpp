// The words under which records are printed and stored; part of the JSON contract and of the database schema.
#include <cstdio>
#include <cstdlib>

#include "model/record/candidate.h"
#include "model/record/validation.h"
#include "model/record/verification.h"

namespace cpfit {

namespace {

/// A value outside its enumeration is our own mistake.
[[noreturn]] void stop_at(const char* enumeration, int value) {
  std::fprintf(stderr, "cpfit: %s has no value %d\n", enumeration, value);
  std::abort();
}

}  // namespace

std::string_view name_of(CandidateStatus status) {
  switch (status) {
    case CandidateStatus::kOk:
      return "ok";
    case CandidateStatus::kShip:
      return "ship";
    case CandidateStatus::kControl:
      return "control";
    case CandidateStatus::kReject:
      return "reject";
  }
  stop_at("CandidateStatus", static_cast<int>(status));
}

std::string_view name_of(Metric metric) {
  switch (metric) {
    case Metric::kStepSeconds:
      return "step_seconds";
    case Metric::kTokensPerSecondPerGpu:
      return "tokens_per_second_per_gpu";
    case Metric::kTflopsPerGpu:
      return "tflops_per_gpu";
    case Metric::kMfu:
      return "mfu";
    case Metric::kPeakBytes:
      return "peak_bytes";
    case Metric::kResidentBytes:
      return "resident_bytes";
    case Metric::kReservedBytes:
      return "reserved_bytes";
    case Metric::kKernelSeconds:
      return "kernel_seconds";
    case Metric::kCollectiveSeconds:
      return "collective_seconds";
    case Metric::kExposedSeconds:
      return "exposed_seconds";
  }
  stop_at("Metric", static_cast<int>(metric));
}

std::string_view name_of(VerifiedTensor tensor) {
  switch (tensor) {
    case VerifiedTensor::kOut:
      return "out";
    case VerifiedTensor::kLse:
      return "lse";
    case VerifiedTensor::kDq:
      return "dq";
    case VerifiedTensor::kDk:
      return "dk";
    case VerifiedTensor::kDv:
      return "dv";
  }
  stop_at("VerifiedTensor", static_cast<int>(tensor));
}

}  // namespace cpfit
