// What context parallelism adds to a layer while its attention runs, beyond the saved q, k, v, out and log-sum-exp: ring
// slots, partial outputs, gathered K/V, all-to-all copies. One place per kind; zero at cp = 1.
// Source: cp_model.md A.2, A.5, B.8. r: ranks of the ring part, u: ranks of the all-to-all part, cp = r*u.
// Q = 2*T*h_q*d, KV = 4*T*h_kv*d, KV4 = 2*KV, LSE = 4*T*h_q.
#pragma once

#include <algorithm>

#include "model/memory/stage_figures.h"
#include "model/memory/tensor_text.h"

namespace cpfit {

struct CpShape {
  double ring = 1;     // r
  double a2a = 1;      // u
  double windows = 1;  // W of a double ring
};

inline CpShape cp_shape(const Recipe& recipe) {
  CpShape shape;
  if (recipe.cp_comm == CpComm::kA2a) {
    shape.a2a = recipe.cp;
  } else if (recipe.cp_comm == CpComm::kA2aP2p) {
    shape.a2a = recipe.a2a_degree;
    shape.ring = static_cast<double>(recipe.cp) / recipe.a2a_degree;
  } else {
    shape.ring = recipe.cp;
    if (recipe.cp_comm == CpComm::kDoubleRing) shape.windows = static_cast<double>(recipe.cp) / recipe.window;
  }
  return shape;
}

/// The CP rank that peaks. TE's ring keeps full partial outputs of the lower ranks' steps and half ones of the higher: the
/// last rank. TE's all-gather copies the K/V prefix of each chunk: rank 0 owns the last chunk.
inline std::int32_t worst_cp_rank(const RecipeFigures& f, const Recipe& recipe) {
  if (recipe.cp == 1 || recipe.cp_comm == CpComm::kAllGather || recipe.cp_comm == CpComm::kA2a) return 0;
  return f.rules->ring_buffers == RingBuffers::kAllSteps ? recipe.cp - 1 : 0;
}

/// Partial outputs a ring rank holds when it keeps those of all steps, in units of one full (out, LSE).
inline double partial_outputs(double ring, double rank, bool halves) {
  return halves ? (rank + 1.0) + (ring - 1.0 - rank) / 2.0 : ring;
}

/// K and V as they travel: those of all query heads where grouped heads are repeated before the exchange.
inline double ring_kv_bytes(const RecipeFigures& f) {
  return f.rules->kv_heads_repeated_in_ring ? 2.0 * f.q_bytes() : f.kv_bytes();
}

template <class Sink>
void ring_forward_tensors(const RecipeFigures& f, const CpShape& shape, bool zigzag, Sink& sink) {
  if (shape.ring <= 1.0) return;
  constexpr Component kCp = Component::kCpBuffers;
  const double q = f.q_bytes(), kv = ring_kv_bytes(f), lse = f.lse_bytes();
  if (f.rules->kv_exchange == KvExchange::kAllGatherOnce) {
    sink({kCp, "gathered.key_value", "cp*KV", "cp_model B.8"}, shape.ring * kv);
  } else if (f.rules->ring_buffers == RingBuffers::kAllSteps) {
    sink({kCp, "ring.key_value_slots", "r*KV: every step's buffer lives until forward returns", "cp_model A.2, TE PR 2916"},
         shape.ring * kv);
  } else {
    sink({kCp, "ring.key_value_slots", "2*KV, 3*KV with an inter-window prefetch", "cp_model B.8"},
         (shape.windows > 1.0 ? 3.0 : 2.0) * kv);
  }
  if (f.rules->accumulate_fp32) {
    sink({kCp, "ring.output_fp32", "2*Q", "cp_model B.8"}, 2.0 * q);
    sink({kCp, "ring.log_sum_exp", "LSE", "cp_model B.8"}, lse);
    sink({kCp, "ring.block_output", "Q + LSE", "cp_model B.8"}, q + lse);
  } else {
    const bool all = f.rules->ring_buffers == RingBuffers::kAllSteps;
    const double outputs = all ? partial_outputs(shape.ring, shape.ring - 1.0, zigzag && f.causal) : 2.0;
    sink({kCp, "ring.partial_outputs", "(r full, or 2 slots)*(Q + LSE) on the last rank", "cp_model A.2, H.2"},
         outputs * (q + lse));
  }
  if (zigzag && f.causal) sink({kCp, "ring.half_copies", "KV/2: contiguous halves of a causal step", "cp_model A.2"}, kv / 2.0);
}

template <class Sink>
void ring_backward_tensors(const RecipeFigures& f, const CpShape& shape, bool zigzag, Sink& sink) {
  if (shape.ring <= 1.0) return;
  constexpr Component kCp = Component::kCpBuffers;
  const double q = f.q_bytes(), kv = ring_kv_bytes(f);
  const bool fp32_wire = f.rules->dkv_wire == DkvWire::kFp32;
  if (f.rules->kv_exchange == KvExchange::kAllGatherOnce) {
    sink({kCp, "gathered.key_value", "cp*KV", "cp_model B.8"}, shape.ring * kv);
  } else {
    sink({kCp, "ring.key_value_slots", "2*KV", "cp_model B.8"}, 2.0 * kv);
  }
  sink({kCp, "ring.grad_key_value_slots", "2*KV, 2*KV4 with fp32 dKV", "cp_model A.2, B.8"}, (fp32_wire ? 4.0 : 2.0) * kv);
  if (shape.windows > 1.0) {
    sink({kCp, "double_ring.window_buffers", "KV prefetch + dKV at the window's edge", "cp_model B.8"}, 2.0 * kv);
  }
  sink({kCp, "ring.grad_query", "Q, 2*Q in fp32", "cp_model B.8"}, (f.rules->accumulate_fp32 ? 2.0 : 1.0) * q);
  if (f.rules->accumulate_fp32) sink({kCp, "ring.grad_key_value_fp32", "KV4", "cp_model B.8"}, 2.0 * kv);
  if (zigzag && f.causal) sink({kCp, "ring.half_copies", "KV/2: contiguous halves of a causal step", "cp_model A.2"}, kv / 2.0);
}

template <class Sink>
void a2a_tensors(const RecipeFigures& f, const CpShape& shape, bool backward, Sink& sink) {
  if (shape.a2a <= 1.0) return;
  constexpr Component kCp = Component::kCpBuffers;
  // With fewer KV heads than all-to-all ranks the heads are repeated first (DeepSpeed, ALST).
  const double repeat = std::max(1.0, shape.a2a / f.kv_heads);
  const double q = f.q_bytes(), kv = f.kv_bytes() * repeat;
  if (backward) {
    sink({kCp, "a2a.grad_copies", "3*(Q+KV) + Q: send and receive sides of dq, dk, dv", "cp_model A.5"}, 3.0 * (q + kv) + q);
  } else {
    sink({kCp, "a2a.copies", "max(3*(Q+KV), (Q+KV) + 3*Q): send and receive sides of q, k, v, then of out", "cp_model A.5"},
         std::max(3.0 * (q + kv), (q + kv) + 3.0 * q));
  }
}

template <class Sink>
void cp_tensors(const RecipeFigures& f, const Recipe& recipe, bool backward, Sink& sink) {
  if (recipe.cp == 1) return;
  constexpr Component kCp = Component::kCpBuffers;
  const bool zigzag = recipe.shard_layout == ShardLayout::kZigzag;
  if (recipe.cp_comm == CpComm::kAllGather) {
    const double kv = f.kv_bytes();
    sink({kCp, "gathered.key_value", "2*cp*KV: as received and in sequence order", "cp_model A.5"}, 2.0 * f.cp * kv);
    if (backward) {
      sink({kCp, "gathered.grad_key_value", "2*cp*KV: full-length dK, dV and their reordered copy", "cp_model A.5"},
           2.0 * f.cp * kv);
    } else {
      sink({kCp, "gathered.prefix_copies", "cp*KV: contiguous K/V prefix of the last chunk", "cp_model A.5"}, f.cp * kv);
    }
    return;
  }
  const CpShape shape = cp_shape(recipe);
  a2a_tensors(f, shape, backward, sink);
  if (backward) {
    ring_backward_tensors(f, shape, zigzag, sink);
  } else {
    ring_forward_tensors(f, shape, zigzag, sink);
  }
}

}  // namespace cpfit
