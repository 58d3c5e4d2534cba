#include "sim/evaluate/eager_host.h"

namespace cpfit {

namespace {

/// Host time of one send or receive queued in a group call through torch.distributed (an all-to-all over u ranks is u of each).
/// Read off the rows on even lines of yunchang's README table whose sequences are so short that nothing else counts (512 and
/// 8,192 tokens on 8 A100); those on odd lines check it.
constexpr double kPointToPoint = 35e-6;  // s

// Calls of PyTorch, counted in the codes (yunchang 56118e0, zhuzilin 8996282):
constexpr double kExchangeCalls = 8;   // Function.apply, reshape, transpose, contiguous, empty_like, the collective, twice more
constexpr double kReorderCalls = 5;    // the same of a group of one rank, which only reorders
constexpr double kStepCalls = 16;      // two buffers, four operations, the batch, four waits; flash_attn: checks, outputs, kernel
constexpr double kMergeCalls = 11;     // casts, the merge operator by operator, slices
constexpr double kBackwardCalls = 16;  // both rings' buffers and waits, gradients' buffers, flash_attn's three kernels, sums
constexpr int kMessages = 4;           // of a hop: K and V, sent and received
constexpr double kIndexedCalls = 9;    // from K's half on: V's mask to indices, their copy, index; flash_attn's calls as above

}  // namespace

EagerHost eager_host(const MeasuredKernel& kernel, const GpuRates& rates) {
  const Recipe& recipe = kernel.recipe;
  const double call = rates.launch_eager;
  EagerHost host;
  if (recipe.cp == 1) {
    host.whole = call * kStepCalls * ((kernel.forward ? 1 : 0) + (kernel.backward ? 2 : 0));
    return host;
  }
  const int u = a2a_ranks(recipe), ring = recipe.cp / u;
  const double exchange = u > 1 ? kExchangeCalls * call + 2.0 * u * kPointToPoint : kReorderCalls * call;
  const bool exchanges = u > 1 || recipe.cp_comm == CpComm::kP2p;
  const int before = !exchanges ? 0 : kernel.packed_qkv ? (u > 1 ? 1 : 0) : 3;
  const int after = !exchanges || (kernel.packed_qkv && u == 1) ? 0 : 1;
  const double hop = ring > 1 ? kMessages * kPointToPoint : 0.0;
  const double step = kStepCalls * call, merge = ring > 1 ? kMergeCalls * call : 0.0;
  host.before = before * exchange + hop + step;
  const double forward = (before + after) * exchange + ring * (step + merge) + (ring - 1) * hop;
  const double backward = (before + after) * exchange + ring * (kBackwardCalls * call) + (2.0 * ring - 1) * hop;
  host.whole = (kernel.forward ? forward : 0.0) + (kernel.backward ? backward : 0.0);
  if (kernel.indexed_halves) {
    // The last rank, whose kernels take longest (zigzag_ring_flash_attn_varlen.py): the copy of indices for K's half finds the
    // stream empty once it is through, and the same after dV's sum in backward, before both hops are queued. One document has
    // slices instead, whose ends are numbers on the GPU: they are waited for as well.
    const double idle_forward = kIndexedCalls * call, idle_backward = 2.0 * hop + (kStepCalls + kIndexedCalls) * call;
    host.idle = (ring - 1) * ((kernel.forward ? idle_forward : 0.0) + (kernel.backward ? idle_backward : 0.0));
  }
  return host;
}

}  // namespace cpfit
