// The operators on one GPU. One object per rank: one stream, in whose order everything happens, allocation included; nothing is
// on the default stream. Calls return before the device is done; download and finish wait. CUDA's headers stay behind this one.
// A program that wants them links cpfit::kernels_cuda where CMake has CPFIT_CUDA_FOUND, and asks why_no_cuda() before it makes
// any: a build with CUDA also runs on machines without a driver.
//
// bf16 and fp16 run on tensor cores where the heads allow it (launch.h, tensor_cores_take), everything else on fused
// multiply-adds. Own kernels give the same bits on every run. With AttentionPath::kCudnn full and causal blocks of bf16 and fp16
// go to cuDNN's fused attention, as in the frameworks; what cuDNN does not take goes to our own kernels (attention_paths()
// counts).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "kernels/core/operators.h"
#include "kernels/transport/in_process.h"

struct CUstream_st;  // cudaStream_t points to it

namespace cpfit::kernels {

enum class AttentionPath : std::uint8_t { kOwn, kCudnn };

/// How many blocks each implementation has computed, forward and backward counted one each.
struct AttentionPathCounts {
  std::int64_t tensor_cores = 0;
  std::int64_t plain = 0;
  std::int64_t cudnn = 0;
};

/// What transports and measurements on the same device know beyond Operators.
class DeviceOperators : public Operators {
 public:
  [[nodiscard]] virtual CUstream_st* stream() const = 0;
  [[nodiscard]] virtual int device() const = 0;
  [[nodiscard]] virtual AttentionPathCounts attention_paths() const = 0;
  /// `check` is called while download and finish wait, and once after; it throws to end the wait: a peer that died would
  /// otherwise be waited for without end. Forgotten when `owner` is gone.
  virtual void watch(const std::shared_ptr<const void>& owner, std::function<void()> check) = 0;
};

/// 0 where there is none, or no driver.
[[nodiscard]] int device_count();
/// Empty when a device can be used; else the reason, for a person ("waived: ...").
[[nodiscard]] std::string why_no_cuda();
/// Empty when `path` was built in; else the reason.
[[nodiscard]] std::string why_not(AttentionPath path);

/// `sum`: kFp32 or kFp64 (then all inputs are fp64 too). Throws Error where the device, or the path, cannot be had.
[[nodiscard]] std::unique_ptr<DeviceOperators> make_cuda_operators(int device, Number sum,
                                                                   AttentionPath path = AttentionPath::kOwn);

/// For ranks that are threads of one process and share a GPU: how their mailboxes reach these operators' memory. Borrows them.
[[nodiscard]] MemoryAccess memory_access_of(DeviceOperators& operators);

}  // namespace cpfit::kernels
