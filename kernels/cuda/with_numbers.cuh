// From the number type that a view names to the C++ type that a kernel was compiled for.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/core/array.h"
#include "kernels/cuda/cuda_call.h"

namespace cpfit::kernels::cuda {

/// Calls run.template operator()<Element>() for a floating-point type.
template <class Run>
void with_number(Number number, const Run& run) {
  switch (number) {
    case Number::kFp64:
      run.template operator()<double>();
      return;
    case Number::kFp32:
      run.template operator()<float>();
      return;
    case Number::kBf16:
      run.template operator()<__nv_bfloat16>();
      return;
    case Number::kFp16:
      run.template operator()<__half>();
      return;
    case Number::kInt32:
      break;
  }
  not_compiled("arithmetic", "a type", "that is no floating-point type");
}

/// Calls run.template operator()<Part, Sum, Real>() for the pairs that sums are compiled for: a part of any type into fp32, the
/// same type of 16 bits, fp32 into 16 bits; fp64 into fp64.
template <class Run>
void with_pair(Number part, Number sum, const char* operation, const Run& run) {
  if (part == Number::kFp64 && sum == Number::kFp64) return run.template operator()<double, double, double>();
  if (part == Number::kFp32 && sum == Number::kFp32) return run.template operator()<float, float, float>();
  if (part == Number::kBf16 && sum == Number::kFp32) return run.template operator()<__nv_bfloat16, float, float>();
  if (part == Number::kFp16 && sum == Number::kFp32) return run.template operator()<__half, float, float>();
  if (part == Number::kBf16 && sum == Number::kBf16) return run.template operator()<__nv_bfloat16, __nv_bfloat16, float>();
  if (part == Number::kFp16 && sum == Number::kFp16) return run.template operator()<__half, __half, float>();
  if (part == Number::kFp32 && sum == Number::kBf16) return run.template operator()<float, __nv_bfloat16, float>();
  if (part == Number::kFp32 && sum == Number::kFp16) return run.template operator()<float, __half, float>();
  not_compiled(operation, name_of(part), name_of(sum));
}

}  // namespace cpfit::kernels::cuda
