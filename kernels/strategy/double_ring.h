// The double ring (LoongTrain, InternEvo): cp / w windows of w ranks. KV turns inside the window, w - 1 hops, while the KV that
// the window began with moves on to the next window; each rank then starts over with the KV of its counterpart one window back.
// dKV makes w hops per window: inside it, and from its last step straight to the rank of the next window that goes on with it;
// the very last brings it home. Sums are in sum_number() inside the first window and, unless the method keeps them wide, cast to
// the inputs' type at its edge, where they stay. With one window it is the ring whose dKV comes home. Source: cp_model.md A.1,
// A.6.
#pragma once

#include "kernels/strategy/ring_parts.h"

namespace cpfit::kernels {

[[nodiscard]] Forward double_ring_forward(const RankContext& context, const View& q, const KvView& own);
[[nodiscard]] Gradients double_ring_backward(const RankContext& context, const Forward& forward, const View& q, const KvView& own,
                                             const View& dout);

}  // namespace cpfit::kernels
