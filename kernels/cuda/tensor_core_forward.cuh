// The forward launch of one element type; instantiated in forward_bf16.cu and forward_fp16.cu.
#pragma once

#include "kernels/cuda/tensor_core_launch.cuh"

namespace cpfit::kernels::cuda {

template <class Element>
void launch_tensor_core_forward(const Target& target, const BlockInputs& block, const View& out, const View& lse) {
  const Heads& heads = block.heads;
  with_head_sizes(heads, [&]<int kQk, int kV>() {
    using Tiles = device::ForwardTiles<Element, kQk, kV>;
    const PreparedMask mask = prepare_mask(target.stream, block.mask, block.q.rows, block.k.rows, Tiles::kRows, Tiles::kKeys);
    device::ForwardArguments<Element> arguments;
    arguments.mask = mask.mask;
    arguments.q = input_of<Element>(block.q, heads.q, heads.qk_dim);
    arguments.k = input_of<Element>(block.k, heads.kv, heads.qk_dim);
    arguments.v = input_of<Element>(block.v, heads.kv, heads.v_dim);
    arguments.out = output_of<Element>(out, heads.q, heads.v_dim);
    arguments.lse = static_cast<float*>(lse.data);
    arguments.heads = heads.q;
    arguments.group = heads.q / heads.kv;
    arguments.scale_log2 = log2_scale(heads.scale);
    launch_kernel(target, "forward", device::attention_forward_kernel<Element, kQk, kV>,
                  device::tiles_in(mask.mask.queries, Tiles::kRows), heads.q, Tiles::kThreads, Tiles::kSharedBytes, arguments);
  });
}

}  // namespace cpfit::kernels::cuda
