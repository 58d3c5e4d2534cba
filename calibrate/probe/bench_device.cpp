#include "calibrate/probe/bench_device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "calibrate/probe/backend.h"
#include "model/quantity/problem.h"

namespace cpfit::probe {

std::vector<std::string> measuring_backends() {
  if (has_cuda_backend()) return {"host", "cuda", "loopback"};
  return {"host"};
}

std::unique_ptr<BenchDevice> make_bench_device(const std::string& backend, kernels::Transport& host,
                                               std::chrono::milliseconds timeout) {
  if (backend == "host") return make_host_device(host);
  if ((backend == "cuda" || backend == "loopback") && has_cuda_backend()) {
    return make_gpu_device(host, backend == "loopback", timeout);
  }
  throw Error(fmt::format("the backend '{}' is not part of this cpfit-bench, which has: {}", backend,
                          fmt::join(measuring_backends(), ", ")));
}

}  // namespace cpfit::probe
