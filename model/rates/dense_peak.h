// The dense peak of a device for a number format: the denominator of MFU and the bound no measured rate may pass.
#pragma once

#include "model/cluster/gpu.h"
#include "model/quantity/units.h"
#include "model/rates/rate_set.h"
#include "model/recipe/recipe.h"

namespace cpfit {

/// Zero where the device has no such arithmetic.
[[nodiscard]] inline FlopsPerSecond dense_peak(const Gpu& gpu, MathKind math) {
  switch (math) {
    case MathKind::kBf16:
      return gpu.bf16;
    case MathKind::kNvfp4:
      return gpu.fp4;
    case MathKind::kFp8Tensor:
    case MathKind::kFp8Block:
    case MathKind::kMxfp8:
      return gpu.fp8;
    case MathKind::kFp32:
      return gpu.fp32;
  }
  return gpu.bf16;
}

/// Of the arithmetic a recipe asks for; that of bf16 where the device emulates the format.
[[nodiscard]] inline FlopsPerSecond dense_peak(const Gpu& gpu, Precision precision) {
  switch (precision) {
    case Precision::kBf16:
      return gpu.bf16;
    case Precision::kFp16:
      return gpu.fp16;
    case Precision::kNvfp4:
      return gpu.fp4.value() > 0 ? gpu.fp4 : gpu.bf16;
    case Precision::kFp8Delayed:
    case Precision::kFp8Current:
    case Precision::kFp8Block:
    case Precision::kMxfp8:
      return gpu.fp8.value() > 0 ? gpu.fp8 : gpu.bf16;
  }
  return gpu.bf16;
}

}  // namespace cpfit
