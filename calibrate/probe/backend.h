// What a rank computes with, by the name given to --backend, and what its tensors travel through: host memory over the ranks' own
// transport, or a GPU's memory over NCCL (a GPU per rank) or by way of the host (ranks that share one).
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "kernels/core/operators.h"
#include "kernels/core/transport.h"

namespace cpfit::probe {

/// Those that this program was built with.
[[nodiscard]] std::vector<std::string> backends();
/// Empty when the backend, one of backends(), can run on this machine; else why not.
[[nodiscard]] std::string why_no_backend(const std::string& backend);

/// One rank's, for the length of a job.
class RankBackend {
 public:
  RankBackend() = default;
  RankBackend(const RankBackend&) = delete;
  RankBackend& operator=(const RankBackend&) = delete;
  virtual ~RankBackend() = default;

  /// Operators that keep their sums in `sum`.
  [[nodiscard]] virtual kernels::Operators& operators(kernels::Number sum) = 0;
  /// For the tensors of those operators.
  [[nodiscard]] virtual kernels::Transport& transport(kernels::Number sum) = 0;
};

/// All ranks of `host` call it. Throws Error for a backend that is not in backends(). Borrows the transport.
[[nodiscard]] std::unique_ptr<RankBackend> make_backend(const std::string& backend, kernels::Transport& host,
                                                        std::chrono::milliseconds timeout);

// Two sources implement these: with CUDA and without; the build takes one.
[[nodiscard]] bool has_cuda_backend();
[[nodiscard]] std::string why_no_cuda_backend();
[[nodiscard]] std::unique_ptr<RankBackend> make_cuda_backend(kernels::Transport& host, std::chrono::milliseconds timeout);

}  // namespace cpfit::probe
