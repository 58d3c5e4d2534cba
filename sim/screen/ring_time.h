// How long a ring of attention steps takes, as the max-plus recurrence of each implementation (cp_model.md G.3), not as a sum
// of per-step maxima unless the implementation really waits at every step.
// c[i]: compute time of ring step i (r steps). m: time of one message.
#pragma once

#include <span>

#include "model/quantity/units.h"

namespace cpfit {

/// Buffers for all steps (TransformerEngine): prefetch runs ahead, a step waits only for its own message.
/// max over k in [0, r) of (k*m + sum_{i>=k} c_i).
[[nodiscard]] Seconds ring_prefetching(std::span<const double> c, double m);

/// Two slots: the next message starts when this step starts. sum_{i<r-1} max(c_i, m) + c_{r-1}.
[[nodiscard]] Seconds ring_two_slots(std::span<const double> c, double m);

/// TransformerEngine backward: step i posts message i, computes, then waits for it (it carries the partial dKV).
/// sum_i max(c_i, m_i) with m = first, middle..., last (r messages).
[[nodiscard]] Seconds ring_waiting_backward(std::span<const double> c, double first, double middle, double last);

/// All K and V in one gather issued first: the own block overlaps it, every other step waits for it. max(c_0, gather) + sum_{i>0}
/// c_i.
[[nodiscard]] Seconds gather_behind_first_step(std::span<const double> c, double gather);

}  // namespace cpfit
