#include "calibrate/probe/backend.h"
#include "calibrate/probe/bench_device.h"
#include "model/quantity/problem.h"

namespace cpfit::probe {

std::unique_ptr<BenchDevice> make_gpu_device(kernels::Transport&, bool, std::chrono::milliseconds) {
  throw Error(why_no_cuda_backend());
}

}  // namespace cpfit::probe
