// cuDNN's fused attention for full and causal blocks of bf16 and fp16: the production path of the frameworks. Built where
// cudnn.h, libcudnn and the frontend's headers were found; else cudnn_absent.cpp stands here and says so.
#pragma once

#include <memory>
#include <string>

#include "kernels/cuda/launch.h"

namespace cpfit::kernels::cuda {

class CudnnAttention {
 public:
  CudnnAttention() = default;
  CudnnAttention(const CudnnAttention&) = delete;
  CudnnAttention& operator=(const CudnnAttention&) = delete;
  virtual ~CudnnAttention() = default;

  /// False when cuDNN does not take this block (its kind, its heads, or no engine for them); nothing was launched then.
  /// out may be fp32: cuDNN's own rounding to the inputs' type comes first.
  virtual bool forward(const Target& target, const BlockInputs& block, const View& out, const View& lse) = 0;
  /// `out`: the rows of the final output that belong to this block, in the inputs' type; cuDNN makes delta from it itself.
  virtual bool backward(const Target& target, const BlockInputs& block, const View& out, const BlockGradients& gradients) = 0;
};

[[nodiscard]] std::string why_no_cudnn();
/// "9.19.0", of the library that is loaded; "none".
[[nodiscard]] std::string cudnn_version();
[[nodiscard]] std::unique_ptr<CudnnAttention> make_cudnn_attention();

}  // namespace cpfit::kernels::cuda
