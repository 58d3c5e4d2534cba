// The point-to-point ring, in its two families. TransformerEngine: K and V in one message, every partial output kept and
// corrected after the last step; the backward ring turns the other way, starts from the KV received last and ends on the
// diagonal, dKV riding one step behind the KV it belongs to. zhuzilin, USP, PyTorch: K and V apart, partial outputs merged as
// they come; the backward ring starts from the own KV and dKV has its own messages, the last of which brings it home. (PyTorch's
// two ways to rotate KV differ in messages, not in numbers.) Source: cp_model.md A.1, A.2, A.6.
#pragma once

#include "kernels/strategy/ring_parts.h"
#include "kernels/strategy/step_plan.h"

namespace cpfit::kernels {

[[nodiscard]] Forward ring_forward(const RankContext& context, const RingSeat& seat, const View& q, const KvView& own);

/// `forward` is of ring_forward; `out` the rows that it describes (after a head exchange: not forward.out).
[[nodiscard]] Gradients ring_backward(const RankContext& context, const RingSeat& seat, const Forward& forward, const View& out,
                                      const View& q, const KvView& own, const View& dout);

/// The two backward rings.
[[nodiscard]] Gradients reversed_ring_backward(const RankContext& context, const RingSeat& seat, const KvView& received_last,
                                               const QueryView& query);
[[nodiscard]] Gradients homecoming_ring_backward(const RankContext& context, const RingSeat& seat, const KvView& own,
                                                 const QueryView& query);

}  // namespace cpfit::kernels
