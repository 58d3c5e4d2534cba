#include "kernels/cuda/cudnn_attention.h"
#include "model/quantity/problem.h"

namespace cpfit::kernels::cuda {

std::string why_no_cudnn() {
  return "this build has no cuDNN: it needs cudnn.h, libcudnn and cudnn_frontend.h (CMake: CPFIT_CUDNN_FRONTEND)";
}

std::string cudnn_version() { return "none"; }

std::unique_ptr<CudnnAttention> make_cudnn_attention() { throw Error(why_no_cudnn()); }

}  // namespace cpfit::kernels::cuda
