// In how many pieces a framework reduces gradients and gathers parameters, where that follows the model's tensors.
#pragma once

#include "sim/screen/screen.h"

namespace cpfit {

/// Buckets of PyTorch's DistributedDataParallel over `layers` layers and the vocabulary's matrices of a rank with `parameters`:
/// tensors join in the order of the backward pass until one fills the bucket, and are never cut
/// (compute_bucket_assignment_by_size in torch/csrc/distributed/c10d/reducer.cpp). Norms and biases are left out.
[[nodiscard]] double whole_tensor_buckets(const ScreenContext& context, const Recipe& recipe, double parameters, double layers);

/// Weight matrices of one layer. DeepSpeed leaves norms and biases whole on every rank (stage3_param_persistence_threshold).
[[nodiscard]] double matrices_per_layer(const ScreenContext& context, const Recipe& recipe);

/// Tensors of one layer of which ZeRO-1 over slices copies each rank's part back by itself: its matrices and norms.
[[nodiscard]] double sliced_tensors(const ScreenContext& context, const Recipe& recipe);

/// What the host takes to launch a collective over `tensors` tensors in `ranks` pieces each, one by one.
[[nodiscard]] Seconds host_time_of_slices(const ScreenContext& context, std::int64_t ranks, double tensors);

}  // namespace cpfit
