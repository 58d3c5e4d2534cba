// A Kineto trace kernel by kernel: beside when a GPU computed and communicated (trace.h) for whom a message was, what it carried,
// and of which sizes a product or attention was. Read as a stream; memory grows with the GPU's kernels and with the few operators
// that carry sizes of use.
//
// For whom: "Process Group Description" of a communication kernel (PyTorch 2.4 and later). Megatron describes its groups by their
// role (TENSOR_MODEL_PARALLEL_GROUP, CONTEXT_PARALLEL_GROUP, DATA_PARALLEL_GROUP_WITH_CP, PIPELINE_MODEL_PARALLEL_GROUP:
// megatron/core/parallel_state.py, 934c826), a PyTorch device mesh by its dimension ("mesh_cp", "mesh_dp_shard":
// torch/distributed/ device_mesh.py). Our own traces say the axis in the category. Sizes: "Input Dims", "Input type" and
// "Concrete Inputs" of the operator with the kernel's "External id" (record_shapes=True); "Collective name", "In msg nelems",
// "dtype", "Group size" of the kernel.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "calibrate/read/trace.h"

namespace cpfit {

/// For whom a message is.
enum class MessageAxis : std::uint8_t { kCp, kTp, kPp, kDp, kUnknown };
inline constexpr std::size_t kMessageAxes = 5;
[[nodiscard]] std::string_view name_of(MessageAxis axis);  // "cp", "tp", "pp", "dp", "unknown"
/// By the description of a process group.
[[nodiscard]] MessageAxis axis_of_group(std::string_view description);

struct TracedMessage {
  std::string collective;  // "allreduce", "_allgather_base", ...
  std::string dtype;       // "BFloat16"
  std::int64_t in_elements = 0, out_elements = 0, ranks = 0;
  std::string group, members;  // name; "[0, 1]"
};

struct TracedKernel {
  std::int64_t start = 0, end = 0;  // picoseconds since the first event
  std::int64_t external = -1;       // of the operator that launched it
  std::int32_t stream = 0;
  std::int32_t message = -1;  // into KernelTrace::messages
  DeviceWork work = DeviceWork::kCompute;
  MessageAxis axis = MessageAxis::kUnknown;
};

/// An operator of PyTorch with its sizes, as the trace prints them.
struct TracedOperator {
  std::string name;             // "aten::mm"
  std::string dims;             // "[[4096,8192],[8192,1024]]"
  std::string types, concrete;  // "[\"c10::BFloat16\",\"c10::BFloat16\"]"
};

struct KernelTrace {
  std::string path;
  std::string format;  // as RecordedTrace
  std::optional<std::int64_t> rank;
  std::map<std::string, std::int64_t> ranks;                               // of devices that say their own (simulated ones)
  std::string gpu;                                                         // of the first device, as the driver names it
  std::int64_t host_gpus = 0;                                              // devices the trace describes; 0: not said
  std::vector<std::pair<std::string, std::vector<TracedKernel>>> devices;  // by name, kernels in the order of the file
  std::vector<TracedMessage> messages;
  std::unordered_map<std::int64_t, TracedOperator> operators;  // by external id
  std::vector<TracedStep> steps;                               // as RecordedTrace
};

/// Problems as read_trace; Nsight's exports have none of this ("trace.format").
[[nodiscard]] Outcome<KernelTrace> read_kernel_trace(const std::string& path);

/// What of a window a device spent communicating without computing, by axis. Exact in picoseconds. A moment in which several
/// messages run counts to the one that began first, so that the axes add up to the whole (sim/timeline's rule).
struct AxisExposure {
  std::array<std::int64_t, kMessageAxes> exposed{};
  std::int64_t compute = 0, communication = 0;
  [[nodiscard]] std::int64_t total() const;
};
[[nodiscard]] AxisExposure axis_exposure(const std::vector<TracedKernel>& kernels, std::int64_t from, std::int64_t to);

}  // namespace cpfit
