// All-to-all over heads (Ulysses): a group of u consecutive ranks trades tokens for heads, so that each has all the tokens of the
// group and 1/u of the heads; then a ring of cp / u such places, or none. The group's tokens are brought into the order that the
// ring's cut gives them, the order of the sequence when there is no ring. Per pass four exchanges (q, k, v, out; dout, dq, dk,
// dv). With fewer KV heads than ranks each KV head goes to u / h_kv ranks, and their gradients are summed where they came from
// (HF/ALST). Source: cp_model.md A.1, A.5.
#pragma once

#include <vector>

#include "kernels/strategy/ring_parts.h"

namespace cpfit::kernels {

/// The layer that a place of the ring sees: cp / u ranks, its share of the heads.
[[nodiscard]] Layer layer_after_exchange(const Layer& layer, std::int32_t degree);
/// Where `rank` sits in that ring.
[[nodiscard]] RingSeat seat_after_exchange(std::int32_t rank, std::int32_t cp, std::int32_t degree);
/// Do the tokens of `degree` consecutive ranks make a shard of the same layout over cp / degree ranks? Striped shards do not.
[[nodiscard]] bool groups_make_shards(const Cut& cut, const Mask& mask, std::int32_t degree);

[[nodiscard]] Forward exchanged_forward(const RankContext& context, const View& q, const KvView& own);
[[nodiscard]] Gradients exchanged_backward(const RankContext& context, const Forward& forward, const View& dout);
/// [u * s_q][h_q / u] of the kernels -> [s_q][h_q] of this rank's tokens.
[[nodiscard]] Array lse_sent_home(const RankContext& context, const View& lse);

}  // namespace cpfit::kernels
