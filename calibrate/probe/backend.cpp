#include "calibrate/probe/backend.h"

#include <fmt/format.h>

#include "kernels/reference/cpu_operators.h"
#include "model/quantity/problem.h"

namespace cpfit::probe {

namespace {

class HostBackend final : public RankBackend {
 public:
  explicit HostBackend(kernels::Transport& host) : host_(host) {}

  [[nodiscard]] kernels::Operators& operators(kernels::Number sum) override {
    return sum == kernels::Number::kFp64 ? *in_double_ : *in_float_;
  }
  [[nodiscard]] kernels::Transport& transport(kernels::Number) override { return host_; }

 private:
  kernels::Transport& host_;
  std::unique_ptr<kernels::Operators> in_double_ = kernels::make_cpu_operators(kernels::Number::kFp64);
  std::unique_ptr<kernels::Operators> in_float_ = kernels::make_cpu_operators(kernels::Number::kFp32);
};

}  // namespace

std::vector<std::string> backends() {
  if (has_cuda_backend()) return {"host", "cuda"};
  return {"host"};
}

std::string why_no_backend(const std::string& backend) { return backend == "cuda" ? why_no_cuda_backend() : std::string(); }

std::unique_ptr<RankBackend> make_backend(const std::string& backend, kernels::Transport& host,
                                          std::chrono::milliseconds timeout) {
  if (backend == "host") return std::make_unique<HostBackend>(host);
  if (backend == "cuda" && has_cuda_backend()) return make_cuda_backend(host, timeout);
  throw Error(
      fmt::format("the backend '{}' is not part of this cpfit-bench, which has: {}", backend, fmt::join(backends(), ", ")));
}

}  // namespace cpfit::probe
