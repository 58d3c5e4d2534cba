// What the compiled kernels look like from outside: one function per operator, views in, a launch on the stream out. Shapes and
// types are the callers' duty (cuda_operators.cpp checks them); each function says which types it was compiled for.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/core/operators.h"

namespace cpfit::kernels::cuda {

/// Where kernels go: a stream, and how much shared memory a block may ask for.
struct Target {
  cudaStream_t stream = nullptr;
  int shared_bytes = 0;
};

struct BlockInputs {
  Heads heads;
  BlockMask mask;
  View q, k, v;
};
struct BlockGradients {
  View dout, lse, delta;  // given
  View dq, dk, dv;        // made
};

// --- attention on tensor cores: Element is __nv_bfloat16 or __half, sums fp32
/// Whether they take this block: head sizes that are multiples of 8 up to 192 (q, k) and 128 (v), places aligned to 16 bytes.
[[nodiscard]] bool tensor_cores_take(const BlockInputs& block);
template <class Element>
void launch_tensor_core_forward(const Target& target, const BlockInputs& block, const View& out, const View& lse);
template <class Element>
void launch_tensor_core_backward(const Target& target, const BlockInputs& block, const BlockGradients& gradients);

// --- attention by fused multiply-adds: (float, float), (double, double), (__nv_bfloat16, float), (__half, float)
template <class Element, class Real>
void launch_plain_forward(const Target& target, const BlockInputs& block, const View& out, const View& lse);
template <class Element, class Real>
void launch_plain_backward(const Target& target, const BlockInputs& block, const BlockGradients& gradients);

// --- sums; Real (fp32, fp64) is the type of the log-sum-exps. part and sum: fp32, bf16, fp16, or both Real
void launch_merge(const Target& target, const Heads& heads, MergeForm form, const View& part, const View& part_lse,
                  const View& sum, const View& sum_lse);
void launch_merge_lse(const Target& target, MergeForm form, const View& part_lse, const View& sum_lse);
void launch_add_weighted(const Target& target, const Heads& heads, const View& part, const View& part_lse, const View& total_lse,
                         const View& sum);
void launch_add(const Target& target, const View& part, const View& sum);
void launch_row_delta(const Target& target, const Heads& heads, const View& out, const View& dout, const View& delta);

// --- moves; any type
void launch_convert(const Target& target, const View& from, const View& to);  // not int32
void launch_fill(const Target& target, const View& to, double value);
void launch_gather_rows(const Target& target, const View& from, const View& index, const View& to);
/// Columns [from_begin, from_begin + count) of every row to columns [to_begin, ...).
void launch_copy_columns(const Target& target, const View& from, std::int64_t from_begin, const View& to, std::int64_t to_begin,
                         std::int64_t count);
/// fp32 [rows][columns] to [columns][rows].
void launch_transpose(const Target& target, const float* from, float* to, std::int64_t rows, int columns);

}  // namespace cpfit::kernels::cuda
