#include "calibrate/probe/backend.h"
#include "model/quantity/problem.h"

namespace cpfit::probe {

bool has_cuda_backend() { return false; }

std::string why_no_cuda_backend() { return "this program was built without CUDA"; }

std::unique_ptr<RankBackend> make_cuda_backend(kernels::Transport&, std::chrono::milliseconds) {
  throw Error(why_no_cuda_backend());
}

}  // namespace cpfit::probe
