#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>

#include "calibrate/probe/backend.h"
#include "calibrate/probe/gpu_messages.h"
#include "calibrate/probe/node_share.h"
#include "kernels/cuda/cuda_operators.h"

namespace cpfit::probe {

using kernels::Number;

NodeShare share_of_node(kernels::Transport& host) {
  std::array<char, 256> name{};
  (void)gethostname(name.data(), name.size() - 1);
  std::uint32_t hash = 2166136261U;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  const auto size = static_cast<std::size_t>(host.size());
  std::array<std::int32_t, 2> own = {static_cast<std::int32_t>(hash), kernels::device_count()};
  std::vector<std::int32_t> all(2 * size);
  std::vector<std::int32_t> group(size);
  std::iota(group.begin(), group.end(), 0);
  host.wait(host.start_all_gather(group, {own.data(), Number::kInt32, 1, 2},
                                  {all.data(), Number::kInt32, static_cast<std::int64_t>(size), 2}));
  NodeShare share;
  for (std::size_t rank = 0; rank < size; ++rank) {
    std::int32_t neighbours = 0;
    for (std::size_t other = 0; other < size; ++other) neighbours += all[2 * other] == all[2 * rank] ? 1 : 0;
    if (neighbours > all[2 * rank + 1]) share.gpu_per_rank = false;
    if (static_cast<std::int32_t>(rank) < host.rank() && all[2 * rank] == own[0]) ++share.place;
  }
  return share;
}

namespace {

class CudaBackend final : public RankBackend {
 public:
  CudaBackend(kernels::Transport& host, std::chrono::milliseconds timeout)
      : host_(host), timeout_(timeout), share_(share_of_node(host)) {}

  [[nodiscard]] kernels::Operators& operators(Number sum) override { return *lane_of(sum).operators; }
  [[nodiscard]] kernels::Transport& transport(Number sum) override { return *lane_of(sum).transport; }

 private:
  struct Lane {
    std::unique_ptr<kernels::DeviceOperators> operators;
    std::unique_ptr<kernels::Transport> transport;  // borrows the operators: goes first
  };

  /// Made when first asked for, by all ranks at the same case.
  Lane& lane_of(Number sum) {
    Lane& lane = sum == Number::kFp64 ? in_double_ : in_float_;
    if (lane.operators == nullptr) {
      const int devices = std::max(kernels::device_count(), 1);
      lane.operators = kernels::make_cuda_operators(share_.place % devices, sum);
      lane.transport = make_gpu_messages(*lane.operators, host_, share_.gpu_per_rank, timeout_);
    }
    return lane;
  }

  kernels::Transport& host_;
  std::chrono::milliseconds timeout_;
  NodeShare share_;
  Lane in_double_;
  Lane in_float_;
};

}  // namespace

bool has_cuda_backend() { return true; }

std::string why_no_cuda_backend() { return kernels::why_no_cuda(); }

std::unique_ptr<RankBackend> make_cuda_backend(kernels::Transport& host, std::chrono::milliseconds timeout) {
  return std::make_unique<CudaBackend>(host, timeout);
}

}  // namespace cpfit::probe
