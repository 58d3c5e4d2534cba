// KV gathered once, then one kernel per chunk of queries against the keys that it can see (TransformerEngine all_gather, llama3
// style): K and V are gathered and brought into the order of the sequence, again in the backward pass, whose dK and dV are summed
// over the kernels, brought back and reduce-scattered. Source: cp_model.md A.3, A.5.
#pragma once

#include "kernels/strategy/ring_parts.h"

namespace cpfit::kernels {

[[nodiscard]] Forward all_gather_forward(const RankContext& context, const View& q, const KvView& own);
[[nodiscard]] Gradients all_gather_backward(const RankContext& context, const Forward& forward, const View& q, const KvView& own,
                                            const View& dout);

}  // namespace cpfit::kernels
