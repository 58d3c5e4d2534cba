// The backward launches of one element type; instantiated in backward_bf16.cu and backward_fp16.cu.
#pragma once

#include "kernels/cuda/tensor_core_launch.cuh"

namespace cpfit::kernels::cuda {

template <class Element>
void launch_tensor_core_backward(const Target& target, const BlockInputs& block, const BlockGradients& gradients) {
  const Heads& heads = block.heads;
  device::BackwardArguments<Element> arguments;
  arguments.q = input_of<Element>(block.q, heads.q, heads.qk_dim);
  arguments.k = input_of<Element>(block.k, heads.kv, heads.qk_dim);
  arguments.v = input_of<Element>(block.v, heads.kv, heads.v_dim);
  arguments.dout = input_of<Element>(gradients.dout, heads.q, heads.v_dim);
  arguments.dq = output_of<Element>(gradients.dq, heads.q, heads.qk_dim);
  arguments.dk = output_of<Element>(gradients.dk, heads.kv, heads.qk_dim);
  arguments.dv = output_of<Element>(gradients.dv, heads.kv, heads.v_dim);
  arguments.lse = static_cast<const float*>(gradients.lse.data);
  arguments.delta = static_cast<const float*>(gradients.delta.data);
  arguments.heads = heads.q;
  arguments.group = heads.q / heads.kv;
  arguments.scale = static_cast<float>(heads.scale);
  arguments.scale_log2 = log2_scale(heads.scale);
  with_head_sizes(heads, [&]<int kQk, int kV>() {
    using Dkdv = device::DkdvTiles<Element, kQk, kV>;
    using Dq = device::DqTiles<Element, kQk, kV>;
    {
      const PreparedMask mask = prepare_mask(target.stream, block.mask, block.q.rows, block.k.rows, Dkdv::kRows, Dkdv::kKeys);
      arguments.mask = mask.mask;
      launch_kernel(target, "backward, dk and dv", device::attention_dkdv_kernel<Element, kQk, kV>,
                    device::tiles_in(mask.mask.keys, Dkdv::kKeys), heads.kv, Dkdv::kThreads, Dkdv::kSharedBytes, arguments);
    }
    const PreparedMask mask = prepare_mask(target.stream, block.mask, block.q.rows, block.k.rows, Dq::kRows, Dq::kKeys);
    arguments.mask = mask.mask;
    launch_kernel(target, "backward, dq", device::attention_dq_kernel<Element, kQk, kV>,
                  device::tiles_in(mask.mask.queries, Dq::kRows), heads.q, Dq::kThreads, Dq::kSharedBytes, arguments);
  });
}

}  // namespace cpfit::kernels::cuda
