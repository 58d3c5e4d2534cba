// Launches of the tensor core kernels for one element type: which tile sizes, which grid, how much shared memory. Included by one
// .cu file per type and direction, because their kernels are what takes long to compile.
#pragma once

#include "kernels/cuda/attention_dkdv.cuh"
#include "kernels/cuda/attention_dq.cuh"
#include "kernels/cuda/attention_forward.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/launch_kernel.cuh"
#include "kernels/cuda/prepared_mask.h"

namespace cpfit::kernels::cuda {

/// Calls run.template operator()<kQk, kV>() with the smallest compiled sizes that hold these heads.
template <class Run>
void with_head_sizes(const Heads& heads, const Run& run) {
  if (heads.qk_dim <= 64 && heads.v_dim <= 64) {
    run.template operator()<64, 64>();
  } else if (heads.qk_dim <= 128) {
    run.template operator()<128, 128>();
  } else {
    run.template operator()<192, 128>();
  }
}

template <class Element>
device::Input<Element> input_of(const View& view, int heads, int columns) {
  return {static_cast<const Element*>(view.data), static_cast<int>(view.rows), heads, columns};
}
template <class Element>
device::Output<Element> output_of(const View& view, int heads, int columns) {
  return {view.data, view.number == Number::kFp32, heads, columns};
}
inline float log2_scale(double scale) { return static_cast<float>(scale * 1.4426950408889634); }

}  // namespace cpfit::kernels::cuda
