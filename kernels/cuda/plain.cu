#include <algorithm>

#include "kernels/cuda/cuda_call.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/plain_attention.cuh"
#include "kernels/cuda/prepared_mask.h"
#include "model/quantity/problem.h"

namespace cpfit::kernels::cuda {

namespace {

template <class Element, class Real>
device::PlainArguments<Element, Real> arguments_of(const BlockInputs& block) {
  device::PlainArguments<Element, Real> arguments;
  arguments.q = static_cast<const Element*>(block.q.data);
  arguments.k = static_cast<const Element*>(block.k.data);
  arguments.v = static_cast<const Element*>(block.v.data);
  arguments.heads = block.heads.q;
  arguments.group = block.heads.q / block.heads.kv;
  arguments.qk_dim = block.heads.qk_dim;
  arguments.v_dim = block.heads.v_dim;
  arguments.scale = static_cast<Real>(block.heads.scale);
  return arguments;
}

template <class Element, class Real>
bool is_wide(const View& view) {
  return sizeof(Element) != sizeof(Real) && bytes_of(view.number) == static_cast<std::int64_t>(sizeof(Real));
}

template <class Kernel, class Arguments>
void launch_plain(const Target& target, const char* operation, Kernel kernel, int tiles, int heads, int threads, int shared_bytes,
                  const Arguments& arguments) {
  if (tiles == 0) return;
  check(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes),
        operation);
  const dim3 grid(static_cast<unsigned>(tiles), static_cast<unsigned>(heads));
  kernel<<<grid, static_cast<unsigned>(threads), static_cast<std::size_t>(shared_bytes), target.stream>>>(arguments);
  check_launch(operation);
}

/// Calls run.template operator()<kTile>() with the largest tile whose shared memory a block may have.
template <class BytesOf, class Run>
void with_tile(const Target& target, const char* operation, const Heads& heads, const BytesOf& bytes_with, const Run& run) {
  if (bytes_with.template operator()<32>() <= target.shared_bytes) {
    run.template operator()<32>();
  } else if (bytes_with.template operator()<16>() <= target.shared_bytes) {
    run.template operator()<16>();
  } else {
    throw Error(std::string("CUDA: ") + operation + ": heads of " + std::to_string(heads.qk_dim) + " and " +
                std::to_string(heads.v_dim) + " do not fit into this device's " + std::to_string(target.shared_bytes) +
                " bytes of shared memory per block; take smaller heads or fp32 instead of fp64");
  }
}

}  // namespace

template <class Element, class Real>
void launch_plain_forward(const Target& target, const BlockInputs& block, const View& out, const View& lse) {
  const Heads& heads = block.heads;
  auto arguments = arguments_of<Element, Real>(block);
  arguments.out = out.data;
  arguments.wide_out = is_wide<Element, Real>(out);
  arguments.lse = static_cast<Real*>(lse.data);
  const auto bytes = [&]<int kTile>() { return device::plain_forward_bytes<Real, kTile>(heads.qk_dim, heads.v_dim); };
  with_tile(target, "forward", heads, bytes, [&]<int kTile>() {
    const PreparedMask mask = prepare_mask(target.stream, block.mask, block.q.rows, block.k.rows, kTile, kTile);
    arguments.mask = mask.mask;
    launch_plain(target, "forward", device::plain_forward_kernel<Element, Real, kTile>,
                 device::tiles_in(mask.mask.queries, kTile), heads.q, device::kPlainThreads<kTile>,
                 bytes.template operator()<kTile>(), arguments);
  });
}

template <class Element, class Real>
void launch_plain_backward(const Target& target, const BlockInputs& block, const BlockGradients& gradients) {
  const Heads& heads = block.heads;
  auto arguments = arguments_of<Element, Real>(block);
  arguments.dout = static_cast<const Element*>(gradients.dout.data);
  arguments.dq = gradients.dq.data;
  arguments.dk = gradients.dk.data;
  arguments.dv = gradients.dv.data;
  arguments.wide_dq = is_wide<Element, Real>(gradients.dq);
  arguments.wide_dk = is_wide<Element, Real>(gradients.dk);
  arguments.wide_dv = is_wide<Element, Real>(gradients.dv);
  arguments.final_lse = static_cast<const Real*>(gradients.lse.data);
  arguments.delta = static_cast<const Real*>(gradients.delta.data);
  const auto bytes = [&]<int kTile>() { return device::plain_backward_bytes<Real, kTile>(heads.qk_dim, heads.v_dim); };
  with_tile(target, "backward", heads, bytes, [&]<int kTile>() {
    const PreparedMask mask = prepare_mask(target.stream, block.mask, block.q.rows, block.k.rows, kTile, kTile);
    arguments.mask = mask.mask;
    launch_plain(target, "backward, dk and dv", device::plain_dkdv_kernel<Element, Real, kTile>,
                 device::tiles_in(mask.mask.keys, kTile), heads.kv, device::kPlainThreads<kTile>,
                 bytes.template operator()<kTile>(), arguments);
    launch_plain(target, "backward, dq", device::plain_dq_kernel<Element, Real, kTile>,
                 device::tiles_in(mask.mask.queries, kTile), heads.q, device::kPlainThreads<kTile>,
                 bytes.template operator()<kTile>(), arguments);
  });
}

#define CPFIT_PLAIN(Element, Real)                                                                                \
  template void launch_plain_forward<Element, Real>(const Target&, const BlockInputs&, const View&, const View&); \
  template void launch_plain_backward<Element, Real>(const Target&, const BlockInputs&, const BlockGradients&)
CPFIT_PLAIN(float, float);
CPFIT_PLAIN(double, double);
CPFIT_PLAIN(__nv_bfloat16, float);
CPFIT_PLAIN(__half, float);
#undef CPFIT_PLAIN

}  // namespace cpfit::kernels::cuda
