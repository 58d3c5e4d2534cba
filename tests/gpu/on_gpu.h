// Tests that need a GPU, and say why they did not run where there is none.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "kernels/cuda/cuda_operators.h"

namespace cpfit::kernels {

/// Skips the test, with the reason, where no device can be used.
#define CPFIT_NEEDS_GPU() \
  if (const std::string reason = why_no_cuda(); !reason.empty()) GTEST_SKIP() << "waived: " << reason

}  // namespace cpfit::kernels
