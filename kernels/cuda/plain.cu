#include "kernels/cuda/launch.h"
#include "kernels/cuda/launch_kernel.cuh"
#include "kernels/cuda/plain_attention.cuh"
#include "kernels/cuda/prepared_mask.h"

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

/// 16 rows of fp64 take as much shared memory as 32 of fp32: head sizes of 192 and 128 fit on every device that we build for.
template <class Real>
inline constexpr int kTile = sizeof(Real) == 8 ? 16 : 32;

}  // namespace

template <class Element, class Real>
void launch_plain_forward(const Target& target, const BlockInputs& block, const View& out, const View& lse) {
  const Heads& heads = block.heads;
  auto arguments = arguments_of<Element, Real>(block);
  arguments.out = out.data;
  arguments.wide_out = is_wide<Element, Real>(out);
  arguments.lse = static_cast<Real*>(lse.data);
  const int bytes = device::plain_forward_bytes<Real, kTile<Real>>(heads.qk_dim, heads.v_dim);
  const PreparedMask mask = prepare_mask(target.stream, block.mask, block.q.rows, block.k.rows, kTile<Real>, kTile<Real>);
  arguments.mask = mask.mask;
  launch_kernel(target, "forward", device::plain_forward_kernel<Element, Real, kTile<Real>>,
                device::tiles_in(mask.mask.queries, kTile<Real>), heads.q, device::kPlainThreads<kTile<Real>>, bytes, arguments);
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
  const int bytes = device::plain_backward_bytes<Real, kTile<Real>>(heads.qk_dim, heads.v_dim);
  const PreparedMask mask = prepare_mask(target.stream, block.mask, block.q.rows, block.k.rows, kTile<Real>, kTile<Real>);
  arguments.mask = mask.mask;
  launch_kernel(target, "backward, dk and dv", device::plain_dkdv_kernel<Element, Real, kTile<Real>>,
                device::tiles_in(mask.mask.keys, kTile<Real>), heads.kv, device::kPlainThreads<kTile<Real>>, bytes, arguments);
  launch_kernel(target, "backward, dq", device::plain_dq_kernel<Element, Real, kTile<Real>>,
                device::tiles_in(mask.mask.queries, kTile<Real>), heads.q, device::kPlainThreads<kTile<Real>>, bytes, arguments);
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
